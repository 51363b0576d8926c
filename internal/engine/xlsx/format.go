package xlsx

import (
	"math"
	"strconv"
	"strings"
	"time"
)

// format says how a number format displays a number. The zero value displays a plain number.
type format struct{ date, time, duration bool }

func (f format) isNumber() bool { return !f.date && !f.time && !f.duration }

// builtIn returns the format for a number that has no format code. The numbers from 27 on are dates and times of East
// Asian locales.
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

// formatOf parses a format code. Only the part before the first semicolon is used, which applies to numbers that are
// not negative.
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

	// An m means minutes next to hours or seconds, and otherwise months.
	f.date = f.date || (month && !f.time && !f.duration)
	if f.duration {
		return format{duration: true}
	}

	return f
}

// inside returns the length of the section at the start of text, which begins with one character and ends with end.
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
	from1904   = 1462    // days between the two date systems
	lastSerial = 2958466 // the day after 9999-12-31
	falseDay   = 60      // 29 February 1900, a day that never existed
)

// moment returns the text of a number of days in this format. The kind is impossible if the day does not exist.
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

// duration formats days as hours, minutes and seconds. The hours can exceed 24.
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

// number returns the shortest text with the same value, in a form that is always recognised as a number.
func number(value float64) string {
	const wholeDigits = 1 << 53 // larger doubles cannot represent every integer

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
