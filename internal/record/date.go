package record

import (
	"fmt"
	"regexp"
	"strconv"
	"strings"
	"time"
)

var (
	yearFirst = regexp.MustCompile(`\b([0-9]{4})([-/.])([0-9]{1,2})[-/.]([0-9]{1,2})(?:\b|T)`)
	yearLast  = regexp.MustCompile(`\b([0-9]{1,2})([-/.])\s?([0-9]{1,2})[-/.]\s?([0-9]{4})\b`)
	dayMonth  = regexp.MustCompile(`(?i)\b([0-9]{1,2})(?:\.|st|nd|rd|th)?[\s-]*([\pL]{3,9})\.?[\s,-]*([0-9]{4})\b`)
	monthDay  = regexp.MustCompile(`(?i)([\pL]{3,9})\.?\s+([0-9]{1,2})(?:\.|st|nd|rd|th)?,?\s+([0-9]{4})\b`)
	clock     = regexp.MustCompile(`\b([01]?[0-9]|2[0-3]):([0-5][0-9])(?::([0-5][0-9]))?\b`)
	half      = regexp.MustCompile(`(?i)[0-9]\s*[ap]\.?m\b`)
)

var months = map[string]time.Month{ //nolint:gochecknoglobals // a table
	"january": 1, "jan": 1, "januar": 1, "jänner": 1, "february": 2, "feb": 2, "februar": 2, "march": 3, "mar": 3, "märz": 3, "mrz": 3, "mär": 3,
	"april": 4, "apr": 4, "may": 5, "mai": 5, "june": 6, "jun": 6, "juni": 6, "july": 7, "jul": 7, "juli": 7, "august": 8, "aug": 8,
	"september": 9, "sep": 9, "sept": 9, "october": 10, "oct": 10, "oktober": 10, "okt": 10, "november": 11, "nov": 11,
	"december": 12, "dec": 12, "dezember": 12, "dez": 12,
}

// day is a date in a text with its readings as ISO dates, at most one for each order.
type day struct {
	readings map[Order]string
	from, to int
}

// days returns all dates of a text. Years of two digits are not read, because their century is a guess.
func days(text string) (list []day) {
	add := func(at []int, readings map[Order]string) {
		if len(readings) > 0 {
			list = append(list, day{readings, at[0], at[1]})
		}
	}

	one := func(year, month, number string) map[Order]string {
		if iso, ok := date(year, month, number); ok {
			return map[Order]string{AnyOrder: iso}
		}

		return nil
	}

	for _, at := range yearFirst.FindAllStringSubmatchIndex(text, -1) {
		add(at, one(part(text, at, 1), part(text, at, 3), part(text, at, 4)))
	}

	for _, at := range yearLast.FindAllStringSubmatchIndex(text, -1) {
		first, second, year := part(text, at, 1), part(text, at, 3), part(text, at, 4)
		readings := map[Order]string{}

		if iso, ok := date(year, second, first); ok {
			readings[DayFirst] = iso
		}

		// With points the day is always first.
		if iso, ok := date(year, first, second); ok && part(text, at, 2) != "." {
			readings[MonthFirst] = iso
		}

		add(at, readings)
	}

	for _, at := range dayMonth.FindAllStringSubmatchIndex(text, -1) {
		if month := months[strings.ToLower(part(text, at, 2))]; month != 0 {
			add(at, one(part(text, at, 3), strconv.Itoa(int(month)), part(text, at, 1)))
		}
	}

	for _, at := range monthDay.FindAllStringSubmatchIndex(text, -1) {
		if month := months[strings.ToLower(part(text, at, 1))]; month != 0 {
			add(at, one(part(text, at, 3), strconv.Itoa(int(month)), part(text, at, 2)))
		}
	}

	return list
}

func part(text string, at []int, n int) string {
	if at[2*n] < 0 {
		return ""
	}

	return text[at[2*n]:at[2*n+1]]
}

func date(year, month, number string) (string, bool) {
	y, _ := strconv.Atoi(year)
	m, _ := strconv.Atoi(month)
	d, _ := strconv.Atoi(number)

	at := time.Date(y, time.Month(m), d, 0, 0, 0, 0, time.UTC)
	if y < 1 || m < 1 || m > 12 || at.Day() != d || int(at.Month()) != m {
		return "", false
	}

	return fmt.Sprintf("%04d-%02d-%02d", y, m, d), true
}

// clocks returns all times of day of a text, as hh:mm:ss. A text with am or pm has none.
func clocks(text string) (list []string) {
	if half.MatchString(text) {
		return nil
	}

	for _, at := range clock.FindAllStringSubmatchIndex(text, -1) {
		hours, _ := strconv.Atoi(part(text, at, 1))
		seconds, _ := strconv.Atoi(part(text, at, 3))
		minutes, _ := strconv.Atoi(part(text, at, 2))
		list = append(list, fmt.Sprintf("%02d:%02d:%02d", hours, minutes, seconds))
	}

	return list
}
