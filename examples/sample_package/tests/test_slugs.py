import unittest

from tidytext import slugify, unique_slug


class SlugTest(unittest.TestCase):
    def test_words_are_joined_by_single_hyphens(self):
        self.assertEqual(slugify("  Hello,  World! "), "hello-world")

    def test_accents_are_dropped(self):
        self.assertEqual(slugify("Ärger & Überfluss"), "arger-uberfluss")

    def test_other_scripts_stay(self):
        self.assertEqual(slugify("北京 2024"), "北京-2024")

    def test_underscores_count_as_gaps(self):
        self.assertEqual(slugify("snake_case_name"), "snake-case-name")

    def test_taken_slugs_are_counted_up(self):
        self.assertEqual(unique_slug("News", {"news", "news-2"}), "news-3")

    def test_nothing_becomes_untitled(self):
        self.assertEqual(unique_slug("!!!", set()), "untitled")


if __name__ == "__main__":
    unittest.main()
