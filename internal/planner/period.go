package planner

import (
	"fmt"
	"strconv"
	"strings"
	"time"

	"quern.dev/quern/internal/form"
)

// span is a range of time. To is not part of it.
type span struct {
	From, To time.Time // zero means no limit
	Text     string
	Grain    form.Grain // precision of the words: "2026" is a year
	Month    time.Month // a month whose year the words do not say; From and To are zero
	NoYear   bool       // a quarter or half of this year, which the words do not say
	First    int        // days of that month, 0 if the whole month is meant
	Last     int
}

// grainOf parses "month", "months" and "monthly".
func grainOf(word string) (form.Grain, bool) {
	switch word {
	case "day", "days", "daily", "date":
		return form.Day, true
	case "week", "weeks", "weekly":
		return form.Week, true
	case "month", "months", "monthly":
		return form.Month, true
	case "quarter", "quarters", "quarterly":
		return form.Quarter, true
	case "year", "years", "yearly", "annually", "annual":
		return form.Year, true
	default:
		return "", false
	}
}

func monthOf(word string) time.Month {
	if len(word) < 3 {
		return 0
	}

	for m := time.January; m <= time.December; m++ {
		full := m.String()
		if strings.EqualFold(word, full) || strings.EqualFold(word, full[:3]) || (m == time.September && word == "sept") {
			return m
		}
	}

	return 0
}

func date(year int, month time.Month, day int) time.Time {
	return time.Date(year, month, day, 0, 0, 0, 0, time.UTC)
}

// spanOf returns the whole day, month or other grain that contains a day.
func spanOf(day time.Time, g form.Grain) span {
	y, m, d := day.Date()
	p := span{Grain: g}

	switch g {
	case form.Year:
		p.From, p.To = date(y, 1, 1), date(y+1, 1, 1)
		p.Text = strconv.Itoa(y)
	case form.Quarter:
		first := (m-1)/3*3 + 1
		p.From, p.To = date(y, first, 1), date(y, first+3, 1)
		p.Text = fmt.Sprintf("quarter %d of %d", (m-1)/3+1, y)
	case form.Month:
		p.From, p.To = date(y, m, 1), date(y, m+1, 1)
		p.Text = fmt.Sprintf("%s %d", m, y)
	case form.Week:
		monday := date(y, m, d-(int(day.Weekday())+6)%7)
		p.From, p.To = monday, monday.AddDate(0, 0, 7)
		p.Text = "the week of " + monday.Format(time.DateOnly)
	case form.Day:
		p.From, p.To = date(y, m, d), date(y, m, d+1)
		p.Text = p.From.Format(time.DateOnly)
	}

	return p
}

// back returns a day that is n grains earlier.
func back(day time.Time, n int, g form.Grain) time.Time {
	y, m, _ := day.Date()

	switch g {
	case form.Year:
		return date(y-n, m, 1)
	case form.Quarter:
		return date(y, m-time.Month(3*n), 1)
	case form.Month:
		return date(y, m-time.Month(n), 1)
	case form.Week:
		return day.AddDate(0, 0, -7*n)
	default:
		return day.AddDate(0, 0, -n)
	}
}

func isYear(t token) bool {
	return t.isNumber && len(t.lower) == 4 && t.number >= 1700 && t.number <= 2100
}

// periodAt parses a period that begins at a token, and returns the number of tokens. It does not parse a single year,
// which may also be a number. The parsers are tried in order and the first match is returned.
func periodAt(tokens []token, i int, today time.Time) (span, int) {
	for _, read := range []func([]token, time.Time) (span, int){explicitDay, dayRange, monthAndYear, quarterOrHalf, relative, decade, dayAndMonth, monthAlone} {
		if p, n := read(tokens[i:], today); n > 0 {
			return p, n
		}
	}

	return span{}, 0
}

// explicitDay parses "2026-01-31", "31 January 2026" and "January 31st, 2026".
func explicitDay(t []token, _ time.Time) (span, int) {
	if day, err := time.Parse(time.DateOnly, t[0].lower); err == nil {
		return spanOf(day, form.Day), 1
	}

	if len(t) >= 3 {
		n := 0
		if t[1].lower == "of" && len(t) >= 4 {
			n = 1
		}

		if m := monthOf(t[1+n].lower); m > 0 && isDayNumber(t[0]) && isYear(t[2+n]) {
			return spanOf(date(int(t[2+n].number), m, int(t[0].number)), form.Day), 3 + n
		}

		if m := monthOf(t[0].lower); m > 0 && isDayNumber(t[1]) && isYear(t[2]) {
			return spanOf(date(int(t[2].number), m, int(t[1].number)), form.Day), 3
		}
	}

	return span{}, 0
}

func isDayNumber(t token) bool {
	return t.isNumber && t.number >= 1 && t.number <= 31 && t.number == float64(int(t.number))
}

// monthAndYear parses "March 2026" and "Mar of 2026".
func monthAndYear(t []token, _ time.Time) (span, int) {
	m := monthOf(t[0].lower)
	if m == 0 {
		return span{}, 0
	}

	for n := 1; n < min(len(t), 3); n++ {
		if isYear(t[n]) {
			return spanOf(date(int(t[n].number), m, 1), form.Month), n + 1
		}

		if t[n].lower != "of" && t[n].lower != "in" {
			break
		}
	}

	return span{}, 0
}

// quarterOrHalf parses "Q1 2026", "first quarter of 2026" and "second half of last year".
func quarterOrHalf(t []token, today time.Time) (span, int) {
	number, used, months := 0, 0, 3

	if len(t[0].lower) == 2 && t[0].lower[1] >= '1' && t[0].lower[1] <= '4' && (t[0].lower[0] == 'q' || t[0].lower[0] == 'h' && t[0].lower[1] <= '2') {
		number, used = int(t[0].lower[1]-'0'), 1

		if t[0].lower[0] == 'h' {
			months = 6
		}
	} else if n := ordinalOf(t[0]); n > 0 && len(t) > 1 {
		switch {
		case t[1].lower == "quarter" && n <= 4:
			number, used = n, 2
		case t[1].lower == "half" && n <= 2:
			number, used, months = n, 2, 6
		}
	}

	if used == 0 {
		return span{}, 0
	}

	year, more := today.Year(), 0

	for n := used; n < min(len(t), used+4); n++ {
		if isYear(t[n]) {
			year, more = int(t[n].number), n+1-used

			break
		}

		if n+1 < len(t) && (t[n].lower == "this" || t[n].lower == "last") && t[n+1].lower == "year" {
			if t[n].lower == "last" {
				year--
			}

			more = n + 2 - used

			break
		}

		if t[n].lower != "of" && t[n].lower != "in" && t[n].lower != "the" {
			break
		}
	}

	first := time.Month((number-1)*months + 1)
	p := span{From: date(year, first, 1), To: date(year, first+time.Month(months), 1), Grain: form.Quarter, Text: fmt.Sprintf("quarter %d of %d", number, year)}

	p.NoYear = more == 0

	if months == 6 {
		p.Text = fmt.Sprintf("half %d of %d", number, year)
	}

	return p, used + more
}

func ordinalOf(t token) int {
	if t.ordinal {
		return int(t.number)
	}

	for i, word := range []string{"first", "second", "third", "fourth"} {
		if t.lower == word {
			return i + 1
		}
	}

	return 0
}

// relative parses "today", "this month", "last year" and "past 30 days".
func relative(t []token, today time.Time) (span, int) {
	switch t[0].lower {
	case "today":
		return spanOf(today, form.Day), 1
	case "yesterday":
		return spanOf(today.AddDate(0, 0, -1), form.Day), 1
	}

	if len(t) < 2 {
		return span{}, 0
	}

	isBack := t[0].lower == "last" || t[0].lower == "past" || t[0].lower == "previous"

	if g, ok := grainOf(t[1].lower); ok && g != "" && t[1].lower != "date" {
		switch {
		case t[0].lower == "this" || t[0].lower == "current":
			return spanOf(today, g), 2
		case isBack:
			return spanOf(back(today, 1, g), g), 2
		}
	}

	if len(t) < 3 || !isBack || !t[1].isNumber || t[1].number < 1 || t[1].number > 10000 {
		return span{}, 0
	}

	g, ok := grainOf(t[2].lower)
	if !ok {
		return span{}, 0
	}

	n := int(t[1].number)
	y, m, d := today.Date()
	p := span{To: date(y, m, d+1), Text: fmt.Sprintf("the last %d %ss", n, g), Grain: form.Day}

	switch g {
	case form.Year:
		p.From = date(y-n, m, d)
	case form.Quarter:
		p.From = date(y, m-time.Month(3*n), d)
	case form.Month:
		p.From = date(y, m-time.Month(n), d)
	case form.Week:
		p.From = date(y, m, d-7*n)
	case form.Day:
		p.From = date(y, m, d-n)
	}

	return p, 3
}

// decade parses "1990s".
func decade(t []token, _ time.Time) (span, int) {
	var year int
	if n, err := fmt.Sscanf(t[0].lower, "%4d", &year); n != 1 || err != nil || len(t[0].lower) != 5 || t[0].lower[4] != 's' || year%10 != 0 || year < 1700 || year > 2090 {
		return span{}, 0
	}

	return span{From: date(year, 1, 1), To: date(year+10, 1, 1), Text: "the " + t[0].lower, Grain: form.Year}, 1
}

// dayRange parses "1 and 24 December 2024" and "1 to 15 March 2026".
func dayRange(t []token, _ time.Time) (span, int) {
	if len(t) < 5 || !isDayNumber(t[0]) || t[1].lower != "and" && t[1].lower != "to" || !isDayNumber(t[2]) || !isYear(t[4]) {
		return span{}, 0
	}

	m := monthOf(t[3].lower)
	if m == 0 || t[0].number > t[2].number {
		return span{}, 0
	}

	y := int(t[4].number)

	return span{
		From: date(y, m, int(t[0].number)), To: date(y, m, int(t[2].number)+1), Grain: form.Day, Text: fmt.Sprintf("%d to %d %s %d", int(t[0].number), int(t[2].number), m, y),
	}, 5
}

// dayAndMonth parses "1 March" and "March 15th", whose year is not said.
func dayAndMonth(t []token, _ time.Time) (span, int) {
	if len(t) < 2 {
		return span{}, 0
	}

	for _, i := range []int{0, 1} {
		if m := monthOf(t[1-i].lower); m > 0 && isDayNumber(t[i]) {
			return span{Month: m, First: int(t[i].number), Last: int(t[i].number), Grain: form.Day, Text: fmt.Sprintf("%d %s", int(t[i].number), m)}, 2
		}
	}

	return span{}, 0
}

// monthAlone parses "March". "may" is a verb unless it is written with a capital letter.
func monthAlone(t []token, _ time.Time) (span, int) {
	m := monthOf(t[0].lower)
	if m == 0 || len(t[0].lower) < 4 && t[0].lower != "may" || m == time.May && !t[0].capital {
		return span{}, 0
	}

	return span{Month: m, Grain: form.Month, Text: m.String()}, 1
}

// through returns the days from one day to another of the same month whose year is not said, or that the second says.
func (p span) through(until span) span {
	switch {
	case p.First > 0 && until.Month == p.Month && until.First >= p.First:
		return span{Month: p.Month, First: p.First, Last: until.Last, Grain: form.Day, Text: fmt.Sprintf("%d to %d %s", p.First, until.Last, p.Month)}
	case p.First > 0 && !until.From.IsZero() && until.Grain == form.Day:
		from := date(until.From.Year(), p.Month, p.First)
		if from.After(until.From) {
			from = date(until.From.Year()-1, p.Month, p.First)
		}

		return span{From: from, To: until.To, Grain: form.Day, Text: from.Format(time.DateOnly) + " to " + until.Text}
	case p.First == 0 && until.Grain == form.Month && !until.From.IsZero():
		from := date(until.From.Year(), p.Month, 1)
		if from.After(until.From) {
			return span{}
		}

		return span{From: from, To: until.To, Grain: form.Month, Text: fmt.Sprintf("%s to %s", p.Text, until.Text)}
	default:
		return span{}
	}
}
