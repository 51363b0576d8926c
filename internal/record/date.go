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
	dayMonth  = regexp.MustCompile(`(?i)\b([0-9]{1,2})(?:\.|st|nd|rd|th|er|º|°)?[\s-]*(?:de\s+)?([\pL]{3,10})\.?[\s,-]*(?:del?\s+)?([0-9]{4})\b`)
	monthDay  = regexp.MustCompile(`(?i)([\pL]{3,10})\.?\s+([0-9]{1,2})(?:\.|st|nd|rd|th)?,?\s+([0-9]{4})\b`)
	clock     = regexp.MustCompile(`\b([01]?[0-9]|2[0-3]):([0-5][0-9])(?::([0-5][0-9]))?\b`)
	half      = regexp.MustCompile(`(?i)[0-9]\s*[ap]\.?m\b`)
)

// months has the names and abbreviations of the months in English, German, French, Spanish, Italian, Dutch and Portuguese. No name means different months in
// two of them.
var months = monthsByName( //nolint:gochecknoglobals // a table
	"january jan januar jänner jän janvier janv enero ene gennaio gen januari janeiro",
	"february feb februar février févr fév febrero febbraio februari fevereiro fev",
	"march mar märz mrz mär mars marzo maart mrt março",
	"april apr avril avr abril abr aprile",
	"may mai mayo maggio mag mei maio",
	"june jun juni juin junio giugno giu junho",
	"july jul juli juillet juil julio luglio lug julho",
	"august aug août aout agosto ago augustus",
	"september sep sept septembre septiembre settembre setembro",
	"october oct oktober okt octobre octubre ottobre ott outubro",
	"november nov novembre noviembre novembro",
	"december dec dezember dez décembre déc diciembre dic dicembre dezembro",
)

func monthsByName(names ...string) map[string]time.Month {
	months := map[string]time.Month{}

	for n, list := range names {
		for name := range strings.FieldsSeq(list) {
			months[name] = time.Month(n + 1)
		}
	}

	return months
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
