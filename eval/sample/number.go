package sample

import (
	"fmt"
	"math/big"
	"slices"
	"strings"
	"time"
	"unicode"
)

// Format is a language with its way to write numbers.
type Format int

// The formats.
const (
	English Format = iota
	German
	French
)

// Formats returns all formats.
func Formats() []Format { return []Format{English, German, French} }

func (f Format) String() string { return [...]string{"en", "de", "fr"}[f] }

// unitWords returns the units by the last word of column names.
func unitWords() map[string]string {
	return map[string]string{"eur": "€", "usd": "$", "gbp": "£", "chf": "CHF", "pct": "%", "percent": "%", "prozent": "%", "rate": "fraction", "kg": "kg", "km": "km", "km2": "km²", "m": "m", "mm": "mm", "c": "°C"}
}

// unitOf returns the unit at the end of a column name, or "".
func unitOf(column string) string {
	words := strings.Fields(strings.ToLower(strings.ReplaceAll(column, "_", " ")))
	if len(words) < 2 {
		return ""
	}

	return unitWords()[words[len(words)-1]]
}

// style is the way in which a number is written.
type style struct {
	decimals int
	scale    int // power of ten that a scale word expresses
	zeros    int // number of digits before the point that are rounded to zero
	unit     string
	variant  int // selects one of several ways to write the same value
}

// ulp returns the value of one unit in the last digit shown.
func (s style) ulp() *big.Rat {
	return power(s.zeros + s.scale - s.decimals)
}

func power(n int) *big.Rat {
	p := new(big.Int).Exp(big.NewInt(10), big.NewInt(int64(max(n, -n))), nil)
	if n < 0 {
		return new(big.Rat).SetFrac(big.NewInt(1), p)
	}

	return new(big.Rat).SetInt(p)
}

// rounded returns the value as the style shows it.
func (s style) rounded(value *big.Rat) *big.Rat {
	units := new(big.Rat).Quo(value, s.ulp())
	whole, _ := new(big.Rat).SetString(units.FloatString(0))

	return whole.Mul(whole, s.ulp())
}

// write writes a number in a format, with its unit.
func (s style) write(f Format, value *big.Rat) string {
	shown := s.rounded(value)
	negative := shown.Sign() < 0
	digits := new(big.Rat).Quo(shown.Abs(shown), power(s.scale)).FloatString(s.decimals)

	whole, rest, _ := strings.Cut(digits, ".")
	text := s.group(f, whole)

	if rest != "" {
		text += [...]string{".", ",", ","}[f] + rest
	}

	text = s.measured(f, text, negative)
	if s.zeros > 0 {
		text = [...][2]string{{"about ", "around "}, {"rund ", "etwa "}, {"environ ", "près de "}}[f][s.variant%2] + text
	}

	return text
}

func (s style) group(f Format, whole string) string {
	if len(whole) <= 3 || (len(whole) == 4 && s.variant%3 == 0) || s.variant%11 == 0 {
		return whole
	}

	separator := [...][3]string{{",", ",", ","}, {".", ".", "\u202f"}, {"\u202f", "\u00a0", " "}}[f][s.variant%3]
	for i := len(whole) - 3; i > 0; i -= 3 {
		whole = whole[:i] + separator + whole[i:]
	}

	return whole
}

// measured adds the sign, the scale word and the unit.
func (s style) measured(f Format, text string, negative bool) string {
	sign := ""
	if negative {
		sign = [...]string{"-", "−"}[s.variant%2]
	}

	scales := map[int][3][2]string{
		3: {{" thousand", "k"}, {" Tsd.", " Tausend"}, {" mille", " k"}},
		6: {{" million", "M"}, {" Mio.", " Millionen"}, {" millions", " M"}},
		9: {{" billion", "bn"}, {" Mrd.", " Milliarden"}, {" milliards", " Md"}},
	}

	if s.scale > 0 {
		text += scales[s.scale][f][s.variant%2]
	}

	space := [...]string{" ", "\u00a0", "\u202f"}[s.variant%3]

	switch {
	case s.unit == "":
		return sign + text
	case s.unit == "%" || s.unit == "fraction":
		return sign + text + [...][3]string{{"%", "%", " percent"}, {space + "%", " %", " Prozent"}, {space + "%", " %", " pour cent"}}[f][s.variant%3]
	case slices.Contains([]string{"€", "$", "£"}, s.unit) && f == English:
		return sign + s.unit + text
	case s.unit == "€" && s.variant%5 == 0 && f == German:
		return sign + text + " Euro"
	case s.unit == "€" && s.variant%5 == 0 && f == French:
		if s.scale > 3 && unicode.IsLower([]rune(strings.TrimSpace(scales[s.scale][f][s.variant%2]))[0]) {
			return sign + text + " d’euros"
		}

		return sign + text + " euros"
	}

	return sign + text + space + s.unit
}

// writeDay writes a day in one of the usual ways.
func writeDay(f Format, day time.Time, variant int) string {
	months := [...]string{
		"January February March April May June July August September October November December",
		"Januar Februar März April Mai Juni Juli August September Oktober November Dezember",
		"janvier février mars avril mai juin juillet août septembre octobre novembre décembre",
	}
	month := strings.Fields(months[f])[day.Month()-1]

	switch forms := variant % 4; {
	case forms == 0:
		return day.Format(time.DateOnly)
	case f == English && forms == 1:
		return fmt.Sprintf("%s %d, %d", month, day.Day(), day.Year())
	case f == English && forms == 2:
		return fmt.Sprintf("%s %d %d", month, day.Day(), day.Year())
	case f == English:
		return fmt.Sprintf("%d %s %d", day.Day(), month, day.Year())
	case f == German && forms == 1:
		return day.Format("02.01.2006")
	case f == German:
		return fmt.Sprintf("%d. %s %d", day.Day(), month, day.Year())
	case forms == 1:
		return day.Format("02/01/2006")
	case day.Day() == 1:
		return fmt.Sprintf("1er %s %d", month, day.Year())
	}

	return fmt.Sprintf("%d %s %d", day.Day(), month, day.Year())
}
