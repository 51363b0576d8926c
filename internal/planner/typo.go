package planner

import (
	"slices"
	"strings"

	"quern.dev/quern/internal/lexicon"
)

// corrected plans a question again with the typing errors of its unused words corrected. What comes of it is at most
// offered. It returns false if a word has no correction or more than one.
func corrected(w *world, want Request, c *cover) (Plan, bool) {
	var (
		known  = w.vocabulary()
		tokens = tokenise(want.Question)
		text   strings.Builder
		end    int
		shift  []typo
	)

	for _, one := range c.list() {
		if one.kind != unusedItem {
			continue
		}

		t := tokens[one.from]

		word := lexicon.Correct(t.lower, known)
		if word == "" {
			return Plan{}, false
		}

		text.WriteString(want.Question[end:t.start] + word)
		shift = append(shift, typo{t.start, t.end, word})
		end = t.end
	}

	if len(shift) == 0 {
		return Plan{}, false
	}

	again := want
	again.Question = text.String() + want.Question[end:]
	again.Matches = moved(want.Matches, shift)

	found, _ := w.plan(again)
	if found.Outcome != Answer {
		return Plan{}, false
	}

	found.Outcome = DidYouMean

	for i := range found.Candidates[0].Explained {
		e := &found.Candidates[0].Explained[i]
		if slices.ContainsFunc(shift, func(s typo) bool { return strings.Contains(strings.ToLower(e.Words), s.word) }) {
			e.How = guessed
		}
	}

	return found, true
}

// typo is a word of the question and its correction.
type typo struct {
	start, end int
	word       string
}

// moved returns the matches at their positions in the corrected question, without those that overlap a correction.
func moved(matches []Match, typos []typo) (list []Match) {
	for _, m := range matches {
		by, overlaps := 0, false

		for _, t := range typos {
			overlaps = overlaps || m.Start < t.end && m.End > t.start

			if t.end <= m.Start {
				by += len(t.word) - (t.end - t.start)
			}
		}

		if !overlaps {
			m.Start, m.End = m.Start+by, m.End+by
			list = append(list, m)
		}
	}

	return list
}

// vocabulary returns the words that a question about these datasets may contain.
func (w *world) vocabulary() (list []string) {
	for phrase := range operators {
		if !strings.Contains(phrase, " ") {
			list = append(list, phrase)
		}
	}

	for _, t := range w.tables {
		list = append(list, lexicon.NameWords(t.name[strings.LastIndexByte(t.name, '/')+1:])...)

		for _, c := range t.columns {
			words := lexicon.NameWords(c.Name)
			list = append(list, words...)

			for _, word := range words {
				list = append(list, plural(word))
			}
		}

		for _, m := range t.measures {
			list = append(list, m.words...)
		}
	}

	list = append(list, "monthly", "yearly", "quarterly", "weekly", "daily", "month", "year", "quarter", "months", "years")

	slices.Sort(list)

	return slices.Compact(list)
}

// plural returns the usual plural of a word.
func plural(word string) string {
	switch {
	case strings.HasSuffix(word, "y") && len(word) > 2:
		return word[:len(word)-1] + "ies"
	case strings.HasSuffix(word, "s"):
		return word
	default:
		return word + "s"
	}
}
