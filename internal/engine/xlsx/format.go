package xlsx

import (
	"math"
	"strconv"
	"strings"
	"time"
)

// format is what a number format makes of a number: the zero value leaves it one.
type format struct{ date, time, duration bool }

func (f format) isNumber() bool { return !f.date && !f.time && !f.duration }

// builtIn are the formats that have a number and no code. Those from 27 on are dates and times of East Asia.
func builtIn(number int) format {
	switch {
	case number >= 14 && number <= 17, number >= 27 && number <= 31, number == 36, number >= 50 && number <= 54, number == 57, number == 58:
		return format{date: true}
	case number >= 18 && number <= 21, number >= 32 && number <= 35, number == 45, number == 47, number == 55, number == 56:
		return format{time: true}
	case number == 22:
		return format{date: true, time: true}
	case number == 46:
		return format{duration: true}
	default:
		return format{}
	}
}

// formatOf reads the code of a format, of which the part before the first semicolon counts: that for numbers
// that are not negative.
func formatOf(code string) (f format) {
	var month bool

	for rest := code; rest != "" && rest[0] != ';'; {
		skipped := 1

		switch c := rest[0] | 0x20; {
		case rest[0] == '"':
			skipped = inside(rest, `"`)
		case rest[0] == '[':
			skipped = inside(rest, `]`)
			unit := strings.ToLower(strings.Trim(rest[:skipped], "[]"))
			f.duration = f.duration || (unit != "" && (strings.Trim(unit, "h") == "" || strings.Trim(unit, "m") == "" || strings.Trim(unit, "s") == ""))
		case rest[0] == '\\' || rest[0] == '_' || rest[0] == '*':
			skipped = 2
		case hasPrefixFold(rest, "general"):
			skipped = len("general")
		case hasPrefixFold(rest, "e+"), hasPrefixFold(rest, "e-"):
			skipped = 2
		case hasPrefixFold(rest, "am/pm"), hasPrefixFold(rest, "a/p"):
			f.time = true
			skipped = strings.IndexByte(rest, '/') + 2
		case c == 'y' || c == 'd' || c == 'e' || c == 'g' || c == 'b':
			f.date = true
		case c == 'h' || c == 's':
			f.time = true
		case c == 'm':
			month = true
		}

		rest = rest[min(skipped, len(rest)):]
	}

	// An m is a minute beside hours and seconds, else a month.
	f.date = f.date || (month && !f.time && !f.duration)
	if f.duration {
		return format{duration: true}
	}

	return f
}

// inside is the size of what begins with a sign and ends with another.
func inside(text, end string) int {
	if i := strings.Index(text[1:], end); i >= 0 {
		return i + 2
	}

	return len(text)
}

func hasPrefixFold(text, prefix string) bool {
	return len(text) >= len(prefix) && strings.EqualFold(text[:len(prefix)], prefix)
}

const (
	dayMillis  = 24 * 60 * 60 * 1000
	from1904   = 1462    // days between the two ways to count
	lastSerial = 2958466 // the day after 9999-12-31
	falseDay   = 60      // 29 February 1900, which never was
)

// moment is what a number of days means in a format. It is nothing if there is no such day.
func (f format) moment(days float64, date1904 bool) (text string, k kind) {
	if f.duration {
		return duration(days), textual
	}

	if date1904 && (f.date || days >= 1) {
		days += from1904
	}

	millis := int64(math.Round(days * dayMillis))
	serial := millis / dayMillis

	switch {
	case days < 0 || days >= lastSerial || serial >= lastSerial || serial == falseDay && !date1904:
		return "", impossible
	case !f.date && days < 1:
		return clock(min(millis, dayMillis-1)), dated
	}

	first := time.Date(1899, time.December, 30, 0, 0, 0, 0, time.UTC)
	if serial < falseDay {
		first = first.AddDate(0, 0, 1)
	}

	text = first.AddDate(0, 0, int(serial)).Format(time.DateOnly)
	if rest := millis % dayMillis; f.time || rest != 0 {
		text += " " + clock(rest)
	}

	return text, dated
}

func clock(millis int64) string {
	text := time.UnixMilli(millis).UTC().Format("15:04:05.000")

	return strings.TrimSuffix(text, ".000")
}

// duration has hours beyond the day.
func duration(days float64) string {
	sign := ""
	if days < 0 {
		sign, days = "-", -days
	}

	millis := math.Round(days * dayMillis)
	if millis > math.MaxInt32*1000.0 { // 68 years
		return sign + number(days)
	}

	hours := int64(millis) / (60 * 60 * 1000)
	text := clock(int64(millis) % (60 * 60 * 1000))

	return sign + pad(hours) + text[2:]
}

func pad(n int64) string {
	text := strconv.FormatInt(n, 10)
	if len(text) < 2 {
		return "0" + text
	}

	return text
}

// number is the shortest text that has the same value, in a form that is surely a number.
func number(value float64) string {
	const wholeDigits = 1 << 53 // beyond, a double does not have every whole number

	size := math.Abs(value)

	switch {
	case value == 0:
		return "0"
	case value == math.Trunc(value) && size < wholeDigits:
		return strconv.FormatFloat(value, 'f', 0, 64)
	case size >= 1e-10 && size < wholeDigits:
		return strconv.FormatFloat(value, 'f', -1, 64)
	}

	text := strconv.FormatFloat(value, 'e', -1, 64)
	if !strings.Contains(text, ".") {
		text = strings.Replace(text, "e", ".0e", 1)
	}

	return text
}
