package lexicon

import (
	"strings"
	"unicode"
)

// Stem returns the common stem of the forms of an English word in lower case: "orders", "ordered" and "ordering" become
// "order". It is applied to questions and to names, so a stem need not be a word.
func Stem(word string) string {
	word = irregular(word)

	if len(word) < 4 || strings.ContainsFunc(word, func(r rune) bool { return !unicode.IsLetter(r) }) {
		return word
	}

	if word != "media" && word != "series" && word != "species" && word != "news" {
		word = stemPlural(word)
	}

	for _, ending := range []string{"ing", "ed"} {
		if base, ok := strings.CutSuffix(word, ending); ok && len(base) >= 3 && strings.ContainsAny(base, "aeiouy") {
			word = undouble(base)

			break
		}
	}

	if base, ok := strings.CutSuffix(word, "ie"); ok && len(base) >= 3 {
		return base + "y"
	}

	if base, ok := strings.CutSuffix(word, "e"); ok && len(base) >= 3 {
		return base
	}

	return word
}

func stemPlural(word string) string {
	switch {
	case strings.HasSuffix(word, "ies") && len(word) > 4:
		return word[:len(word)-3] + "y"
	case strings.HasSuffix(word, "sses"), strings.HasSuffix(word, "xes"), strings.HasSuffix(word, "ches"), strings.HasSuffix(word, "shes"):
		return word[:len(word)-2]
	case strings.HasSuffix(word, "ss"), strings.HasSuffix(word, "us"), strings.HasSuffix(word, "is"):
		return word
	case strings.HasSuffix(word, "s"):
		return word[:len(word)-1]
	default:
		return word
	}
}

func undouble(word string) string {
	n := len(word)
	if n > 3 && word[n-1] == word[n-2] && !strings.ContainsRune("sl", rune(word[n-1])) {
		return word[:n-1]
	}

	return word
}

// irregular returns the base of irregular forms.
func irregular(word string) string {
	switch word {
	case "people", "persons":
		return "person"
	case "men":
		return "man"
	case "women":
		return "woman"
	case "children":
		return "child"
	case "sold":
		return "sell"
	case "bought":
		return "buy"
	case "paid":
		return "pay"
	case "spent":
		return "spend"
	case "made":
		return "make"
	case "sent":
		return "send"
	case "began", "begun":
		return "begin"
	case "won":
		return "win"
	case "lost":
		return "lose"
	case "held":
		return "hold"
	case "left":
		return "leave"
	case "built":
		return "build"
	case "wrote", "written":
		return "write"
	case "grew":
		return "grow"
	case "cities":
		return "city"
	case "countries":
		return "country"
	case "categories":
		return "category"
	case "ins":
		return "in"
	case "ids":
		return "id"
	case "took", "taken":
		return "take"
	case "gave", "given":
		return "give"
	case "got":
		return "get"
	case "had", "has":
		return "have"
	case "did", "does", "done":
		return "do"
	case "was", "were", "is", "are", "been":
		return "be"
	case "came":
		return "come"
	case "went", "gone":
		return "go"
	case "ran", "running":
		return "run"
	case "earned":
		return "earn"
	default:
		return word
	}
}

// IsVerb reports whether a word has the form of a verb that says that something was done.
func IsVerb(word string) bool {
	switch word {
	case "sold", "bought", "paid", "spent", "sent", "began", "won", "lost", "built", "wrote", "written", "given", "taken":
		return true
	default:
		return len(word) > 4 && (strings.HasSuffix(word, "ed") || strings.HasSuffix(word, "ing"))
	}
}
