package grounding

import (
	"math/big"
	"regexp"
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"

	"quern.dev/quern/internal/lexicon"
)

type form int

const (
	formNumber form = iota
	formDay
	formQuote
	formClock
	formName // words that precede a marker
	formRelation
)

// figure is a part of the text that may be a claim.
type figure struct {
	from, to int
	digits   int // position of the first digit of a number
	form     form
	values   []numberValue // values that a number can mean
	sign     int           // -1 or 1 if a sign is written, else 0
	percent  bool
	unit     string // also "%"
	scaled   bool
	near     lexicon.Nearness
	days     []day
	ordinal  bool
	spelled  bool   // a number in words
	inner    string // quoted text or name
	markers  []*marker

	known, claim bool // known: claim has been computed; claim: the figure must be checked even without a marker
}

// numberValue is a value that a text can mean. ulp is the value of one unit in its last digit.
type numberValue struct {
	value *big.Rat
	ulp   *big.Rat
	loose *big.Rat      // value of one unit in the last nonzero digit, if trailing zeros may be rounded digits; else nil
	style lexicon.Topic // language that writes numbers in this style; 0 if unknown
}

func power(n int) *big.Rat {
	p := new(big.Int).Exp(big.NewInt(10), big.NewInt(int64(max(n, -n))), nil)
	if n < 0 {
		return new(big.Rat).SetFrac(big.NewInt(1), p)
	}

	return new(big.Rat).SetInt(p)
}

var (
	clock = regexp.MustCompile(`\b[0-2]?[0-9]:[0-5][0-9](:[0-5][0-9])?\b`)
	// numeral matches the numbers of lists and headings, which are not claims.
	numeral = regexp.MustCompile(`(?m)^[ \t]*(?:#+[ \t]*)?(?:[0-9]{1,3}[.)])[ \t]`)
)

// scan finds the figures of a text, in order. It takes quotes as a whole, then dates, times and numbers. Dates and
// numbers do not extend over a cut.
func scan(text string, cuts ...int) []*figure {
	var figures []*figure

	taken := make([]bool, len(text)+1)
	take := func(f *figure) {
		if slices.Contains(taken[f.from:f.to], true) {
			return
		}

		for i := f.from; i < f.to; i++ {
			taken[i] = true
		}

		figures = append(figures, f)
	}

	for _, f := range scanQuotes(text) {
		take(f)
	}

	inNumeral := map[int]bool{}

	for _, at := range numeral.FindAllStringIndex(text, -1) {
		for i := at[0]; i < at[1]; i++ {
			inNumeral[i] = true
		}
	}

	cuts = append(cuts, len(text))
	from := 0

	for _, cut := range cuts {
		for _, f := range scanDays(text[from:cut]) {
			f.from, f.to = f.from+from, f.to+from
			if f.days[0].year != 0 || !inNumeral[f.from] {
				take(f)
			}
		}

		from = cut
	}

	for _, at := range clock.FindAllStringIndex(text, -1) {
		take(&figure{from: at[0], to: at[1], form: formClock})
	}

	for i := 0; i < len(text); {
		if taken[i] || inNumeral[i] || !isDigit(text[i]) {
			i++

			continue
		}

		for cuts[0] <= i {
			cuts = cuts[1:]
		}

		f, end := scanNumber(text[:cuts[0]], i)
		if f != nil {
			take(f)
		}

		i = max(end, i+1)
	}

	for _, f := range scanSpelled(text) {
		take(f)
	}

	slices.SortFunc(figures, func(a, b *figure) int { return a.from - b.from })

	return figures
}

// scanSpelled finds numbers in words. One is left out: it is also an article and a pronoun.
func scanSpelled(text string) []*figure {
	var figures []*figure

	words := lexicon.LowerWords(text)

	for i := 0; i < len(words); i++ {
		var joined []string

		for n := i; n < min(len(words), i+maxSpelledWords); n++ {
			if between := text[words[max(n-1, i)].End:max(words[n].Start, words[max(n-1, i)].End)]; n > i && between != " " && between != "-" && between != "\u00a0" {
				break
			}

			joined = append(joined, words[n].Text)
		}

		value, used := lexicon.Spelled(joined)
		if used == 0 || value < 2 {
			continue
		}

		f := &figure{from: words[i].Start, to: words[i+used-1].End, digits: words[i].Start, spelled: true}

		if powers, known := f.suffix(text, f.to); known && len(powers) > 0 {
			for _, p := range powers {
				f.values = append(f.values, numberValue{value: new(big.Rat).Mul(new(big.Rat).SetInt64(int64(value)), power(p)), ulp: power(p)})
			}

			figures = append(figures, f)
		}

		i += used - 1
	}

	return figures
}

const (
	maxSpelledWords = 6
	maxQuote        = 200
)

// scanQuotes finds quoted values: at most maxQuote bytes, on one line.
func scanQuotes(text string) []*figure {
	var figures []*figure

	closing := map[rune]string{'"': `"`, '“': "”", '„': "“”", '«': "»", '»': "«", '`': "`"}

	for at := 0; at < len(text); {
		open, size := utf8.DecodeRuneInString(text[at:])
		from := at + size
		at = from

		ends, opens := closing[open]
		if !opens {
			continue
		}

		line, _, _ := strings.Cut(text[from:min(len(text), from+maxQuote)], "\n")

		length := strings.IndexAny(line, ends)
		if length < 0 {
			continue
		}

		_, shut := utf8.DecodeRuneInString(line[length:])
		at = from + length + shut

		if inner := strings.TrimFunc(line[:length], unicode.IsSpace); inner != "" {
			from += strings.Index(line, inner)
			figures = append(figures, &figure{from: from, to: from + len(inner), form: formQuote, inner: inner})
		}
	}

	return figures
}

// isYear reports whether a text is a single year from 1900 to 2100.
func isYear(text string) bool {
	return len(text) == 4 && text >= "1900" && text <= "2100" && strings.IndexFunc(text, func(r rune) bool { return r < '0' || r > '9' }) < 0
}
