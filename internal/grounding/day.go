package grounding

import (
	"fmt"
	"regexp"
	"strconv"
	"strings"
)

// day is a date or a part of one. A part that is 0 is not specified.
type day struct{ year, month, day int }

// keys returns the keys of the names that a row with this date can have.
func (d day) keys() []string {
	return []string{d.key(), day{d.year, d.month, 0}.key(), day{0, d.month, 0}.key()}
}

func (d day) key() string { return fmt.Sprintf("@%d-%d-%d", d.year, d.month, d.day) }

// matches reports whether the specified parts of d agree with the date of a cell.
func (d day) matches(cell day) bool {
	return cell.year != 0 && (d.year == 0 || d.year == cell.year) && d.month == cell.month && (d.day == 0 || d.day == cell.day)
}

// monthOf returns the month of a name in English, German or French by its first letters, or 0. Longer prefixes come
// first.
func monthOf(name string) int {
	name = strings.ToLower(name)

	for _, prefix := range []struct {
		text  string
		month int
	}{
		{"juil", 7},
		{"juin", 6},
		{"jan", 1},
		{"jän", 1},
		{"feb", 2},
		{"fév", 2},
		{"mar", 3},
		{"mär", 3},
		{"apr", 4},
		{"avr", 4},
		{"may", 5},
		{"mai", 5},
		{"jun", 6},
		{"jul", 7},
		{"aug", 8},
		{"aoû", 8},
		{"sep", 9},
		{"oct", 10},
		{"okt", 10},
		{"nov", 11},
		{"dec", 12},
		{"dez", 12},
		{"déc", 12},
	} {
		if strings.HasPrefix(name, prefix.text) {
			return prefix.month
		}
	}

	return 0
}

// isMonth reports whether a word is the whole name of a month and not also another word, as "march" and "mars" are.
func isMonth(word string) bool {
	return len(word) > 3 && monthOf(word) != 0 && wholeMonth.MatchString(word) && word != "march" && word != "mars"
}

const (
	monthNames = `(?i:January|February|March|April|May|June|July|August|September|October|November|December|Januar|Jänner|Februar|März|Mai|Juni|Juli|Oktober|Dezember|` +
		`janvier|février|mars|avril|juin|juillet|août|septembre|octobre|novembre|décembre|Jan|Feb|Mar|Apr|Jun|Jul|Aug|Sept|Sep|Oct|Okt|Nov|Dec|Dez|janv|févr|avr|juil|déc)`
	blank = `[ \x{a0}\x{202f}]`
)

// daysForm matches dates. Each alternative has its own groups. A name of a month must end at a word boundary.
var daysForm = regexp.MustCompile(
	`\b(\d{4})-(\d{2})-(\d{2})(?:[T ]\d{2}:\d{2}(?::\d{2}(?:\.\d+)?)?(?:Z|[+-]\d{2}(?::?\d{2})?)?)?\b` +
		`|\b(\d{4})-(\d{2})\b` +
		`|\b(\d{1,2})\.` + blank + `?(\d{1,2})\.` + blank + `?(\d{4})\b` +
		`|\b(\d{1,2})/(\d{1,2})/(\d{4})\b` +
		`|\b(\d{1,2})(?:\.|er|st|nd|rd|th)?` + blank + `(?:of` + blank + `)?(` + monthNames + `)\b\.?,?(?:` + blank + `(\d{4})\b)?` +
		`|\b(` + monthNames + `)\.?` + blank + `(\d{1,2})(?:st|nd|rd|th)?\b(?:,?` + blank + `(\d{4})\b)?` +
		`|\b(` + monthNames + `)\.?` + blank + `(\d{4})\b`)

var wholeMonth = regexp.MustCompile(`^` + monthNames + `$`)

var measuredBehind = regexp.MustCompile(`^(?:[.,]\d|[ \x{a0}\x{202f}]?[%°€$£])`)

var dayBehind = regexp.MustCompile(`^[ \x{a0}\x{202f}]\d{1,2}\b`)

// scanDays finds dates. 02/03/2026 can mean two dates.
func scanDays(text string) []*figure {
	var figures []*figure

	for begin := 0; begin < len(text); {
		at := daysForm.FindStringSubmatchIndex(text[begin:])
		if at == nil {
			break
		}

		for i := range at {
			if at[i] >= 0 {
				at[i] += begin
			}
		}

		begin = at[1]

		// A number that ends a sentence is not the day of the month that begins the next one: "12. November 8, 1959".
		if at[26] >= 0 && at[28] < 0 && dayBehind.MatchString(text[at[1]:]) {
			begin = at[26]

			continue
		}

		// The full name of a month has no point: "December. 14 November".
		if name := max(at[30], at[36]); name >= 0 && strings.IndexByte(text[name:at[1]], '.') > 4 {
			begin = name + strings.IndexByte(text[name:], '.')

			continue
		}

		// A number with a unit is not a day: "in january 12 °C".
		if at[30] >= 0 && at[34] < 0 && measuredBehind.MatchString(text[at[1]:]) {
			begin = at[32]

			continue
		}

		end := at[0] + len(strings.TrimRight(text[at[0]:at[1]], ",."))
		if days := daysAt(text, at); len(days) > 0 {
			figures = append(figures, &figure{from: at[0], to: end, form: formDay, days: days})
		}
	}

	return figures
}

// daysAt returns the dates that a match of daysForm can mean.
func daysAt(text string, at []int) []day {
	group := func(n int) string {
		if at[2*n] < 0 {
			return ""
		}

		return text[at[2*n]:at[2*n+1]]
	}
	number := func(n int) int {
		value, err := strconv.Atoi(group(n))
		if err != nil {
			return 0
		}

		return value
	}

	var days []day

	switch {
	case group(1) != "":
		days = []day{{number(1), number(2), number(3)}}
	case group(4) != "":
		days = []day{{number(4), number(5), 0}}
	case group(6) != "":
		days = []day{{number(8), number(7), number(6)}}
	case group(9) != "":
		days = []day{{number(11), number(10), number(9)}, {number(11), number(9), number(10)}}
	case group(12) != "":
		days = []day{{number(14), monthOf(group(13)), number(12)}}
	case group(15) != "":
		days = []day{{number(17), monthOf(group(15)), number(16)}}
	default:
		days = []day{{number(19), monthOf(group(18)), 0}}
	}

	var possible []day

	for _, d := range days {
		if d.month >= 1 && d.month <= 12 && d.day <= 31 {
			possible = append(possible, d)
		}
	}

	return possible
}
