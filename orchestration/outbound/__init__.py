"""What leaves the building: addresses that may be spoken to, and the ways to speak to them."""
