"""What the API answers, one model a shape. The schema at `/api/schema/` is generated from these."""
