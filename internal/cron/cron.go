// Package cron reads cron expressions and names of time zones, and finds the times that an expression matches. The service and the command line check schedules with it alike.
package cron

import (
	"fmt"
	"strconv"
	"strings"
	"time"
	_ "time/tzdata" // a container may have no time zones
)

// Expression is a parsed cron expression: in each field, the bit of each value that matches.
type Expression struct {
	minutes, hours, days, months, weekdays uint64
	// eitherDay: the day of the month and the day of the week are both restricted. Then a day matches if one of them does, as in every cron.
	eitherDay bool
}

// field describes a field. The names, if there are any, begin with that of the lowest value.
type field struct {
	title    string
	low, top int
	names    string
}

// Parse reads the five fields of an expression. If it is wrong, the problem is the end of a sentence whose subject is the expression. Otherwise the problem is empty.
func Parse(text string) (c Expression, problem string) {
	fields := strings.Fields(text)
	if len(fields) != 5 {
		return Expression{}, "must have five fields: minute, hour, day, month, weekday"
	}

	for i, want := range []struct {
		to *uint64
		field
	}{
		{&c.minutes, field{"minute", 0, 59, ""}},
		{&c.hours, field{"hour", 0, 23, ""}},
		{&c.days, field{"day of the month", 1, 31, ""}},
		{&c.months, field{"month", 1, 12, "jan feb mar apr may jun jul aug sep oct nov dec"}},
		{&c.weekdays, field{"day of the week", 0, 7, "sun mon tue wed thu fri sat"}},
	} {
		if *want.to, problem = want.parse(fields[i]); problem != "" {
			return Expression{}, problem
		}
	}

	if c.weekdays&(1<<7) != 0 {
		c.weekdays |= 1 // Sunday is 0 and 7
	}

	c.eitherDay = !strings.HasPrefix(fields[2], "*") && !strings.HasPrefix(fields[4], "*")

	if _, ok := c.Next(time.Date(2000, 1, 1, 0, 0, 0, 0, time.UTC)); !ok {
		return Expression{}, "never matches: no month of it has such a day"
	}

	return c, ""
}

// parse reads a list of values, ranges and steps, such as 1,5-10,*/15.
func (f field) parse(text string) (bits uint64, problem string) {
	wrong := fmt.Sprintf("has a wrong %s %q: it must be *, numbers from %d to %d, ranges such as %d-%d, steps such as */2, or a list of these with commas",
		f.title, text, f.low, f.top, f.low, f.low+1)

	for part := range strings.SplitSeq(text, ",") {
		span, stepText, hasStep := strings.Cut(part, "/")
		step := 1

		if hasStep {
			var err error
			if step, err = strconv.Atoi(stepText); err != nil || step < 1 || step > f.top || stepText[0] == '+' {
				return 0, wrong
			}
		}

		first, last, isRange := strings.Cut(span, "-")
		low, top := f.low, f.top

		if span != "*" {
			if low = f.value(first); isRange {
				top = f.value(last)
			} else {
				top = low
			}

			if low < f.low || top < low || hasStep && !isRange {
				return 0, wrong
			}
		}

		for value := low; value <= top; value += step {
			bits |= 1 << value
		}
	}

	return bits, ""
}

// value returns a number or the number of a name, and -1 for anything else.
func (f field) value(text string) int {
	for i, name := range strings.Fields(f.names) {
		if strings.EqualFold(name, text) {
			return f.low + i
		}
	}

	n, err := strconv.Atoi(text)
	if err != nil || text[0] == '+' || n < f.low || n > f.top {
		return -1
	}

	return n
}

func has(bits uint64, value int) bool { return bits&(1<<value) != 0 }

func (c Expression) hasDay(t time.Time) bool {
	day, weekday := has(c.days, t.Day()), has(c.weekdays, int(t.Weekday()))
	if c.eitherDay {
		return has(c.months, int(t.Month())) && (day || weekday)
	}

	return has(c.months, int(t.Month())) && day && weekday
}

// maxYears is how far ahead a match is looked for. The 29th of February may be eight years away.
const maxYears = 9

// Next returns the first time after the given one that matches. Both are what a clock shows, written as if it were UTC. ok is false if nothing ever matches.
func (c Expression) Next(shown time.Time) (match time.Time, ok bool) {
	t := shown.Truncate(time.Minute).Add(time.Minute)

	for end := shown.AddDate(maxYears, 0, 0); t.Before(end); {
		switch {
		case !c.hasDay(t):
			t = time.Date(t.Year(), t.Month(), t.Day()+1, 0, 0, 0, 0, time.UTC)
		case !has(c.hours, t.Hour()):
			t = t.Truncate(time.Hour).Add(time.Hour)
		case !has(c.minutes, t.Minute()):
			t = t.Add(time.Minute)
		default:
			return t, true
		}
	}

	return time.Time{}, false
}

// Shows returns what the clock of a place shows at a moment, written as if it were UTC.
func Shows(at time.Time, place *time.Location) time.Time {
	t := at.In(place)

	return time.Date(t.Year(), t.Month(), t.Day(), t.Hour(), t.Minute(), t.Second(), t.Nanosecond(), time.UTC)
}

// Moment returns the first moment at which the clock of a place shows a time or has gone past it. So a time that is left out when the clock is put forward is the moment
// of the change, and a time that comes twice when the clock is put back is its first occurrence.
func Moment(shown time.Time, place *time.Location) time.Time {
	t := time.Date(shown.Year(), shown.Month(), shown.Day(), shown.Hour(), shown.Minute(), 0, 0, place)
	start, end := t.ZoneBounds() // between two changes of the clock

	switch got := Shows(t, place); {
	case got.After(shown):
		return start
	case got.Before(shown):
		return end
	case start.IsZero():
		return t
	}

	_, before := start.Add(-1).Zone()
	if first := shown.Add(-time.Duration(before) * time.Second); first.Before(start) {
		return first.In(place)
	}

	return t
}

// Zone returns the time zone with a name, such as Europe/Vienna. The problem is as that of Parse.
func Zone(name string) (place *time.Location, problem string) {
	place, err := time.LoadLocation(name)
	if err != nil || name == "" || name == "Local" {
		return nil, fmt.Sprintf("is not a time zone: %q; give a name such as Europe/Vienna or UTC", name)
	}

	return place, ""
}
