package planner

import (
	"fmt"
	"strconv"
	"strings"
	"time"
)

// Period is a range of time. To is not part of it.
type Period struct {
	From, To time.Time // zero means no limit
	Text     string
	Grain    Grain // precision of the words: "2026" is a year
}

// Grain is the precision by which times are grouped.
type Grain string

// The grains.
const (
	Day     Grain = "day"
	Week    Grain = "week"
	Month   Grain = "month"
	Quarter Grain = "quarter"
	Year    Grain = "year"
)

// grainOf parses "month", "months" and "monthly".
func grainOf(word string) (Grain, bool) {
	switch word {
	case "day", "days", "daily", "date":
		return Day, true
	case "week", "weeks", "weekly":
		return Week, true
	case "month", "months", "monthly":
		return Month, true
	case "quarter", "quarters", "quarterly":
		return Quarter, true
	case "year", "years", "yearly", "annually", "annual":
		return Year, true
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
func spanOf(day time.Time, g Grain) Period {
	y, m, d := day.Date()
	p := Period{Grain: g}

	switch g {
	case Year:
		p.From, p.To = date(y, 1, 1), date(y+1, 1, 1)
		p.Text = strconv.Itoa(y)
	case Quarter:
		first := (m-1)/3*3 + 1
		p.From, p.To = date(y, first, 1), date(y, first+3, 1)
		p.Text = fmt.Sprintf("quarter %d of %d", (m-1)/3+1, y)
	case Month:
		p.From, p.To = date(y, m, 1), date(y, m+1, 1)
		p.Text = fmt.Sprintf("%s %d", m, y)
	case Week:
		monday := date(y, m, d-(int(day.Weekday())+6)%7)
		p.From, p.To = monday, monday.AddDate(0, 0, 7)
		p.Text = "the week of " + monday.Format(time.DateOnly)
	case Day:
		p.From, p.To = date(y, m, d), date(y, m, d+1)
		p.Text = p.From.Format(time.DateOnly)
	}

	return p
}

// back returns a day that is n grains earlier.
func back(day time.Time, n int, g Grain) time.Time {
	y, m, _ := day.Date()

	switch g {
	case Year:
		return date(y-n, m, 1)
	case Quarter:
		return date(y, m-time.Month(3*n), 1)
	case Month:
		return date(y, m-time.Month(n), 1)
	case Week:
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
func periodAt(tokens []token, i int, today time.Time) (Period, int) {
	for _, read := range []func([]token, time.Time) (Period, int){explicitDay, monthAndYear, quarterOrHalf, relative, decade} {
		if p, n := read(tokens[i:], today); n > 0 {
			return p, n
		}
	}

	return Period{}, 0
}

// explicitDay parses "2026-01-31", "31 January 2026" and "January 31st, 2026".
func explicitDay(t []token, _ time.Time) (Period, int) {
	if day, err := time.Parse(time.DateOnly, t[0].lower); err == nil {
		return spanOf(day, Day), 1
	}

	if len(t) >= 3 {
		n := 0
		if t[1].lower == "of" && len(t) >= 4 {
			n = 1
		}

		if m := monthOf(t[1+n].lower); m > 0 && isDayNumber(t[0]) && isYear(t[2+n]) {
			return spanOf(date(int(t[2+n].number), m, int(t[0].number)), Day), 3 + n
		}

		if m := monthOf(t[0].lower); m > 0 && isDayNumber(t[1]) && isYear(t[2]) {
			return spanOf(date(int(t[2].number), m, int(t[1].number)), Day), 3
		}
	}

	return Period{}, 0
}

func isDayNumber(t token) bool {
	return t.isNumber && t.number >= 1 && t.number <= 31 && t.number == float64(int(t.number))
}

// monthAndYear parses "March 2026" and "Mar of 2026".
func monthAndYear(t []token, _ time.Time) (Period, int) {
	m := monthOf(t[0].lower)
	if m == 0 {
		return Period{}, 0
	}

	for n := 1; n < min(len(t), 3); n++ {
		if isYear(t[n]) {
			return spanOf(date(int(t[n].number), m, 1), Month), n + 1
		}

		if t[n].lower != "of" && t[n].lower != "in" {
			break
		}
	}

	return Period{}, 0
}

// quarterOrHalf parses "Q1 2026", "first quarter of 2026" and "second half of last year".
func quarterOrHalf(t []token, today time.Time) (Period, int) {
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
		return Period{}, 0
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
	p := Period{From: date(year, first, 1), To: date(year, first+time.Month(months), 1), Grain: Quarter, Text: fmt.Sprintf("quarter %d of %d", number, year)}

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
func relative(t []token, today time.Time) (Period, int) {
	switch t[0].lower {
	case "today":
		return spanOf(today, Day), 1
	case "yesterday":
		return spanOf(today.AddDate(0, 0, -1), Day), 1
	}

	if len(t) < 2 {
		return Period{}, 0
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
		return Period{}, 0
	}

	g, ok := grainOf(t[2].lower)
	if !ok {
		return Period{}, 0
	}

	n := int(t[1].number)
	y, m, d := today.Date()
	p := Period{To: date(y, m, d+1), Text: fmt.Sprintf("the last %d %ss", n, g), Grain: Day}

	switch g {
	case Year:
		p.From = date(y-n, m, d)
	case Quarter:
		p.From = date(y, m-time.Month(3*n), d)
	case Month:
		p.From = date(y, m-time.Month(n), d)
	case Week:
		p.From = date(y, m, d-7*n)
	case Day:
		p.From = date(y, m, d-n)
	}

	return p, 3
}

// decade parses "1990s".
func decade(t []token, _ time.Time) (Period, int) {
	var year int
	if n, err := fmt.Sscanf(t[0].lower, "%4d", &year); n != 1 || err != nil || len(t[0].lower) != 5 || t[0].lower[4] != 's' || year%10 != 0 || year < 1700 || year > 2090 {
		return Period{}, 0
	}

	return Period{From: date(year, 1, 1), To: date(year+10, 1, 1), Text: "the " + t[0].lower, Grain: Year}, 1
}
