package grounding

import (
	"math/big"
	"regexp"
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"
)

type form int

const (
	formNumber form = iota
	formDay
	formQuote
	formClock
	formName // words that a marker stands behind
)

// figure is a piece of text that may be a claim.
type figure struct {
	from, to int
	digits   int // where a number has its first
	form     form
	readings []reading // of a number: what it can mean
	sign     int       // that is written
	percent  bool
	unit     string // "%" too
	scaled   bool
	near     nearness
	days     []day
	ordinal  bool
	inner    string // what is quoted
	markers  []*marker

	known, claim bool // whether it is a claim without a marker, once that was asked
}

// reading is a value that a text can mean, and what one in its last digit is worth.
type reading struct {
	value *big.Rat
	ulp   *big.Rat
	loose *big.Rat // what the last digit that is not zero is worth, if zeros were rounded away
	style topic    // language that writes so, if it is told
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
	// numerals of lists and headings, which count nothing.
	numeral = regexp.MustCompile(`(?m)^[ \t]*(?:#+[ \t]*)?(?:[0-9]{1,3}[.)])[ \t]`)
)

// scan finds the figures of a text, in order. Quotes are taken whole, then dates, times and numbers, which do not reach over a cut.
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

	slices.SortFunc(figures, func(a, b *figure) int { return a.from - b.from })

	return figures
}

const maxQuote = 200

// scanQuotes finds quoted values: short, and on one line.
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

// isYear says whether a text is a bare year.
func isYear(text string) bool {
	return len(text) == 4 && text >= "1900" && text <= "2100" && strings.IndexFunc(text, func(r rune) bool { return r < '0' || r > '9' }) < 0
}
