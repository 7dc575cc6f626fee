import unittest

from tidytext import text_table


class TextTableTest(unittest.TestCase):
    def test_columns_are_aligned(self):
        table = text_table([("name", "age"), ("Ada", 36), ("Grace", 9)])
        self.assertEqual(table, "name   age\nAda     36\nGrace    9")

    def test_short_rows_are_fine(self):
        self.assertEqual(text_table([("a",), ("bb", "c")]), "a\nbb  c")

    def test_no_rows_make_an_empty_table(self):
        self.assertEqual(text_table([]), "")

    def test_truth_is_no_number(self):
        self.assertEqual(text_table([("wide cell", 1), (True, 22)]), "wide cell   1\nTrue       22")


if __name__ == "__main__":
    unittest.main()
