import unittest

from tidytext import excerpt

FOX = "The quick brown fox jumps over the lazy dog"


class ExcerptTest(unittest.TestCase):
    def test_short_text_stays_as_it_is(self):
        self.assertEqual(excerpt("The quick fox", 13), "The quick fox")

    def test_white_space_is_folded(self):
        self.assertEqual(excerpt("  The\n quick\t fox ", 40), "The quick fox")

    def test_cut_is_between_two_words(self):
        self.assertEqual(excerpt(FOX, 12), "The quick…")

    def test_long_word_is_cut_inside(self):
        self.assertTrue(excerpt("Donaudampfschifffahrt", 8).startswith("Donau"))

    def test_excerpt_is_never_longer_than_its_limit(self):
        for limit in range(1, len(FOX)):
            self.assertLessEqual(
                len(excerpt(FOX, limit)), limit, f"excerpt(FOX, {limit}) is too long"
            )

    def test_limit_below_one_is_refused(self):
        with self.assertRaises(ValueError):
            excerpt(FOX, 0)


if __name__ == "__main__":
    unittest.main()
