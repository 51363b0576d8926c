package planner

import (
	"unicode"

	"quern.dev/quern/internal/lexicon"
)

// foreign returns the language of a question that is not English, or "" if it is English or the language is not clear.
// English words count against another language.
func foreign(text string, tokens []token, known map[string]op) string {
	scripts := []struct {
		table *unicode.RangeTable
		name  string
	}{
		{unicode.Han, "Chinese"},
		{unicode.Hiragana, "Japanese"},
		{unicode.Katakana, "Japanese"},
		{unicode.Hangul, "Korean"},
		{unicode.Cyrillic, "Russian"},
		{unicode.Arabic, "Arabic"},
		{unicode.Hebrew, "Hebrew"},
		{unicode.Greek, "Greek"},
		{unicode.Thai, "Thai"},
		{unicode.Devanagari, "Hindi"},
	}

	letters, counts := 0, map[string]int{}

	for _, r := range text {
		if !unicode.IsLetter(r) {
			continue
		}

		letters++

		for _, s := range scripts {
			if unicode.Is(s.table, r) {
				counts[s.name]++
			}
		}
	}

	if counts["Japanese"] > 0 {
		counts["Japanese"] += counts["Chinese"]
		counts["Chinese"] = 0
	}

	for name, n := range counts {
		if 2*n > letters {
			return name
		}
	}

	return foreignWords(tokens, known)
}

func foreignWords(tokens []token, known map[string]op) string {
	english, best, most := 0, "", 0

	for _, t := range tokens {
		if _, ok := known[t.lower]; ok || lexicon.IsFiller(t.lower) {
			english++
		}
	}

	for _, l := range lexicon.Languages() {
		n := 0

		for _, t := range tokens {
			if l.Has(t.lower) {
				n++
			}
		}

		if n > most {
			best, most = l.Name, n
		}
	}

	if most >= 2 && most > english {
		return best
	}

	return ""
}
