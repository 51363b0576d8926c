package planner

import (
	"strconv"
	"strings"
	"unicode"
	"unicode/utf8"

	"quern.dev/quern/internal/lexicon"
)

const maxTokens = 80 // of a question; longer questions are not simple

// token is a word, a number or a sign of the question.
type token struct {
	start, end int
	lower      string // without the possessive ending
	stem       string
	isNumber   bool
	number     float64
	percent    bool
	ordinal    bool
	capital    bool // the word begins with a capital letter
	comma      bool // a comma or colon follows
}

// tokenise splits a question. It drops signs without meaning.
func tokenise(text string) []token {
	var list []token

	for i := 0; i < len(text); {
		r, size := utf8.DecodeRuneInString(text[i:])

		switch {
		case unicode.IsDigit(r) && r < utf8.RuneSelf:
			t := numberAt(text, i)
			list, i = append(list, t), t.end
		case unicode.IsLetter(r) || unicode.IsMark(r):
			t := wordAt(text, i)
			list, i = append(list, t), t.end
		case strings.ContainsRune("<>=&%#", r):
			end := i + size
			if end < len(text) && text[end] == '=' && r != '=' {
				end++
			}

			list, i = append(list, token{start: i, end: end, lower: text[i:end], stem: text[i:end]}), end
		default:
			if n := len(list); n > 0 && (r == ',' || r == ':') {
				list[n-1].comma = true
			}

			i += size
		}
	}

	return list
}

func wordAt(text string, start int) token {
	end := start

	for end < len(text) {
		r, size := utf8.DecodeRuneInString(text[end:])
		inside := r == '\'' || r == '’' || r == '.'

		if !unicode.IsLetter(r) && !unicode.IsMark(r) && !unicode.IsDigit(r) && (!inside || !letterAt(text, end+size)) {
			break
		}

		end += size
	}

	lower := strings.ReplaceAll(strings.ToLower(text[start:end]), "’", "'")
	lower = strings.TrimSuffix(strings.TrimSuffix(lower, "'s"), "'")
	first, _ := utf8.DecodeRuneInString(text[start:])
	t := token{start: start, end: end, lower: lower, stem: lexicon.Stem(lower), capital: unicode.IsUpper(first)}

	if n, ok := lexicon.Number(lower); ok {
		t.isNumber, t.number = true, n
	}

	return t
}

func letterAt(text string, at int) bool {
	r, _ := utf8.DecodeRuneInString(text[at:])

	return unicode.IsLetter(r)
}

// numberAt parses "1,200.5", "40k", "12%" and "3rd". A date such as "2026-01-31" stays as it is.
func numberAt(text string, start int) token {
	end := start

	for end < len(text) {
		c := text[end]
		isSign := strings.IndexByte(",.-/", c) >= 0 && end+1 < len(text) && text[end+1] >= '0' && text[end+1] <= '9'

		if (c < '0' || c > '9') && !isSign {
			break
		}

		end++
	}

	t := token{start: start, end: end, lower: text[start:end], stem: text[start:end]}

	value, err := strconv.ParseFloat(strings.ReplaceAll(t.lower, ",", ""), 64)
	if err != nil {
		return t // a date or an unknown form
	}

	t.isNumber, t.number = true, value

	rest := end
	for rest < len(text) && letterAt(text, rest) {
		_, size := utf8.DecodeRuneInString(text[rest:])
		rest += size
	}

	switch suffix := strings.ToLower(text[end:rest]); suffix {
	case "k":
		t.number, t.end = value*1e3, rest
	case "m", "mio":
		t.number, t.end = value*1e6, rest
	case "bn":
		t.number, t.end = value*1e9, rest
	case "st", "nd", "rd", "th":
		t.ordinal, t.end = true, rest
	case "":
		if strings.HasPrefix(text[end:], "'s") && t.lower[len(t.lower)-1] == '0' { // "the 1940's"
			t.isNumber, t.end, t.lower, t.stem = false, end+2, t.lower+"s", t.lower+"s"
		}

		if end < len(text) && text[end] == '%' {
			t.percent, t.end = true, end+1
		}
	case "s": // "1990s"
		t.isNumber, t.end, t.lower, t.stem = false, rest, text[start:rest], text[start:rest]
	default: // a name: "4x4", "2nd-hand"
		t.isNumber, t.end, t.lower = false, rest, strings.ToLower(text[start:rest])
		t.stem = t.lower
	}

	return t
}
