package main

import (
	"encoding/json"
	"math"
	"regexp"
	"strconv"
	"strings"
	"time"

	"golang.org/x/text/unicode/norm"
)

// value is a cell, parsed in every way in which it can be compared.
type value struct {
	null     bool
	text     string // in lower case; an incomplete date is in its normal form, such as xxxx-09-xx
	number   float64
	isNumber bool
	measure  bool // the number has a unit, as in "83 years"
	date     time.Time
	isDate   bool
	seconds  float64
	isSpan   bool
}

// numeral matches a number as people write it, with an optional unit.
var (
	numeral = regexp.MustCompile(`^([-+]?(?:\d{1,3}(?:,\d{3})+|\d+)?(?:\.\d+)?(?:e[-+]?\d+)?)(?:\s*%| ([\p{L}°]+))?$`)
	span    = regexp.MustCompile(`^(?:(-?\d+) days? ?)?(?:(-)?(\d+):(\d{2}):(\d{2}(?:\.\d+)?))?$`)
)

// dateForms are the formats of complete dates. partForms are the formats of incomplete dates, with their normal form.
//
//nolint:gochecknoglobals // constant lists
var (
	dateForms = []string{
		time.DateOnly, time.DateTime, "2006-01-02T15:04:05Z07:00", "2006-01-02T15:04:05", "2006-01-02 15:04:05Z07:00",
		"January 2, 2006", "2 January 2006", "Jan 2, 2006", "2 Jan 2006",
	}
	partForms = map[string]string{"January": "xxxx-01-xx", "January 2006": "2006-01-xx", "January 2": "xxxx-01-02", "2 January": "xxxx-01-02"}
)

func readValue(cell any) value {
	switch cell := cell.(type) {
	case nil:
		return value{null: true}
	case bool:
		return value{text: strconv.FormatBool(cell)}
	case json.Number:
		number, err := cell.Float64()

		return value{text: cell.String(), number: number, isNumber: err == nil}
	case string:
		return readText(cell)
	case map[string]any:
		if seconds, is := cell["interval_seconds"].(json.Number); is {
			number, err := seconds.Float64()

			return value{seconds: number, isSpan: err == nil}
		}
	}

	text, _ := json.Marshal(cell) // the cell was decoded from JSON

	return readText(string(text))
}

func readText(written string) value {
	v := value{text: strings.ToLower(strings.Join(strings.Fields(norm.NFKC.String(written)), " "))}

	if found := numeral.FindStringSubmatch(v.text); found != nil && strings.ContainsAny(found[1], "0123456789") {
		number, err := strconv.ParseFloat(strings.ReplaceAll(found[1], ",", ""), 64)
		v.number, v.isNumber, v.measure = number, err == nil, found[2] != ""
	}

	v = withDate(v)

	if found := span.FindStringSubmatch(v.text); found != nil && v.text != "" {
		v.seconds, v.isSpan = secondsOf(found), true
	}

	return v
}

func withDate(v value) value {
	written := strings.ToUpper(v.text)

	for _, form := range dateForms {
		if at, err := time.Parse(form, written); err == nil {
			v.date, v.isDate = at, true

			return v
		}
	}

	for form, normal := range partForms {
		if at, err := time.Parse(form, written); err == nil {
			v.text = at.Format(normal)

			break
		}
	}

	return v
}

// secondsOf returns the sum of days, hours, minutes and seconds, with the sign of the time.
func secondsOf(found []string) float64 {
	part := func(i int) float64 {
		number, _ := strconv.ParseFloat(found[i], 64) // a missing part is 0

		return number
	}

	clock := part(3)*3600 + part(4)*60 + part(5)
	if found[2] != "" {
		clock = -clock
	}

	return part(1)*86400 + clock
}

// same reports whether two cells are equal. It tries the more certain interpretations first.
func (v value) same(w value) bool {
	switch {
	case v.null || w.null:
		return v.null && w.null
	case v.text == w.text && v.text != "":
		return true
	case v.isNumber && w.isNumber && (!v.measure || !w.measure): // of two numbers with units, the units would have to be equal too
		return near(v.number, w.number)
	case v.isDate && w.isDate:
		return v.date.Equal(w.date)
	case v.isSpan && w.isSpan:
		return near(v.seconds, w.seconds)
	}

	return v.text == w.text && !v.isSpan && !w.isSpan
}

func near(a, b float64) bool {
	apart := math.Abs(a - b)

	return apart <= 0.005 || apart <= 1e-6*math.Max(math.Abs(a), math.Abs(b))
}
