import unittest

from tidytext import count_words, reading_minutes


class WordTest(unittest.TestCase):
    def test_apostrophes_and_hyphens_do_not_end_a_word(self):
        self.assertEqual(count_words("it's a well-known fact"), 4)

    def test_dashes_between_words_are_no_words(self):
        self.assertEqual(count_words("one - two – three"), 3)

    def test_minutes_are_rounded_up(self):
        self.assertEqual(reading_minutes("word " * 231), 2)

    def test_no_text_takes_no_time(self):
        self.assertEqual(reading_minutes("   "), 0)

    def test_speed_below_one_is_refused(self):
        with self.assertRaises(ValueError):
            reading_minutes("word", 0)


if __name__ == "__main__":
    unittest.main()
