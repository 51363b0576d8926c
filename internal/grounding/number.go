package grounding

import (
	"math/big"
	"regexp"
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"

	"quern.dev/quern/internal/lexicon"
)

func isDigit(b byte) bool { return b >= '0' && b <= '9' }

// gap returns the length of a space that can occur within a number, or 0.
func gap(text string) int {
	for _, space := range []string{" ", "\u00a0", "\u202f", "\u2009"} {
		if strings.HasPrefix(text, space) {
			return len(space)
		}
	}

	return 0
}

// scanNumber parses the number whose first digit is at i, and returns its end. Digits that belong to a word are not a
// number; it then returns nil.
func scanNumber(text string, i int) (*figure, int) {
	f := &figure{from: i, to: i, digits: i}
	body, end := numberBody(text, i)
	before, _ := utf8.DecodeLastRuneInString(text[:i])

	if unicode.IsLetter(before) || before == '_' || before == '#' {
		f.unit = lexicon.Unit(strings.ToLower(lastWord(text[:i])))
		if !lexicon.IsMoney(f.unit) {
			return nil, wordEnd(text, end)
		}
	}

	f.to = end
	f.prefix(text)

	powers, known := f.suffix(text, end)
	if !known {
		return nil, wordEnd(text, end)
	}

	f.near = nearnessOf(text[:f.from])
	for _, r := range numberValues(body) {
		for _, p := range powers {
			f.values = append(f.values, numberValue{value: new(big.Rat).Mul(r.value, power(p)), ulp: new(big.Rat).Mul(r.ulp, power(p)), style: r.style})
		}
	}

	if f.near != lexicon.Exactly {
		f.loosen()
	}

	return f, f.to
}

func wordEnd(text string, i int) int {
	for i < len(text) {
		r, size := utf8.DecodeRuneInString(text[i:])
		if !unicode.IsLetter(r) && !unicode.IsDigit(r) {
			break
		}

		i += size
	}

	return i
}

func lastWord(text string) string {
	from := len(text)
	for from > 0 {
		r, size := utf8.DecodeLastRuneInString(text[:from])
		if !unicode.IsLetter(r) {
			break
		}

		from -= size
	}

	return text[from:]
}

// numberBody returns the digits with their separators. A space separates only groups of three digits.
func numberBody(text string, i int) (body string, end int) {
	end = i
	for end < len(text) && isDigit(text[end]) {
		end++
	}

	first := end - i
	spaced := first <= 3

	for end < len(text) {
		rest := text[end:]

		if size := gap(rest); size > 0 {
			if !spaced || !threeDigits(rest[size:]) {
				break
			}

			end += size + 3

			continue
		}

		size := 1
		if strings.HasPrefix(rest, "’") {
			size = len("’")
		} else if !strings.ContainsAny(rest[:1], ".,'") {
			break
		}

		if len(rest) == size || !isDigit(rest[size]) || ((rest[0] != '.' && rest[0] != ',') && !threeDigits(rest[size:])) {
			break
		}

		spaced = false

		for end += size; end < len(text) && isDigit(text[end]); {
			end++
		}
	}

	return text[i:end], end
}

// threeDigits reports whether a text begins with exactly three digits.
func threeDigits(text string) bool {
	return len(text) >= 3 && isDigit(text[0]) && isDigit(text[1]) && isDigit(text[2]) && (len(text) == 3 || !isDigit(text[3]))
}

var (
	groupedPlain = regexp.MustCompile(`^[0-9]{1,3}(?:[ \x{a0}\x{202f}\x{2009}'’][0-9]{3})+(?:[.,][0-9]+)?$`)
	groupedComma = regexp.MustCompile(`^[0-9]{1,3}(?:,[0-9]{3})+(?:\.[0-9]+)?$`)
	groupedPoint = regexp.MustCompile(`^[0-9]{1,3}(?:\.[0-9]{3})+(?:,[0-9]+)?$`)
	decimal      = regexp.MustCompile(`^[0-9]+(?:[.,][0-9]+)?$`)
)

// numberValues returns the values that digits with separators can mean: 1.234 is a little more than one, or more than a
// thousand.
func numberValues(body string) []numberValue {
	if len(body) > maxDigits {
		return nil
	}

	var list []numberValue

	add := func(text string, style lexicon.Topic) {
		value, is := new(big.Rat).SetString(text)
		if !is {
			return
		}

		_, digits, _ := strings.Cut(text, ".")
		list = append(list, numberValue{value: value, ulp: power(-len(digits)), style: style})
	}
	none := func(groups string) func(rune) rune {
		return func(r rune) rune {
			if strings.ContainsRune(groups, r) {
				return -1
			}

			return r
		}
	}

	if decimal.MatchString(body) {
		style := lexicon.English
		if strings.Contains(body, ",") {
			style = lexicon.Continental
		}

		if !strings.ContainsAny(body, ".,") {
			style = 0
		}

		add(strings.Replace(body, ",", ".", 1), style)
	}

	if groupedPlain.MatchString(body) {
		add(strings.Replace(strings.Map(none(" \u00a0\u202f\u2009'’"), body), ",", ".", 1), 0)
	}

	if groupedComma.MatchString(body) && body[0] != '0' {
		add(strings.Map(none(","), body), lexicon.English)
	}

	if groupedPoint.MatchString(body) && body[0] != '0' {
		add(strings.Replace(strings.Map(none("."), body), ",", ".", 1), lexicon.Continental)
	}

	return list
}

// prefix parses the currency and the sign before the digits.
func (f *figure) prefix(text string) {
	at := f.from

	for range 2 {
		for _, sign := range []string{"-", "−", "–", "+"} {
			before, found := strings.CutSuffix(text[:at], sign)
			if last, _ := utf8.DecodeLastRuneInString(before); found && f.sign == 0 && !unicode.IsLetter(last) && !unicode.IsDigit(last) && last != ')' {
				f.sign, at = map[bool]int{true: 1, false: -1}[sign == "+"], len(before)
			}
		}

		for _, word := range []string{"US$", "€", "$", "£", "¥", "CHF", "EUR", "USD", "GBP"} {
			for _, space := range []string{"", " ", "\u00a0", "\u202f"} {
				if before, found := strings.CutSuffix(text[:at], word+space); found && lexicon.IsMoney(lexicon.Unit(strings.ToLower(word))) && (f.unit == "" || space == "") {
					last, _ := utf8.DecodeLastRuneInString(before)
					if unicode.IsLetter(last) || unicode.IsDigit(last) || (space != "" && precededByNumber(before)) {
						continue
					}

					f.unit, at = lexicon.Unit(strings.ToLower(word)), len(before)
				}
			}
		}
	}

	f.from = at
}

// precededByNumber reports whether a currency belongs to the number before it: "5 € 7".
func precededByNumber(before string) bool {
	last, _ := utf8.DecodeLastRuneInString(strings.TrimRight(before, " \u00a0\u202f"))

	return unicode.IsDigit(last)
}

var suffixWord = regexp.MustCompile(`^[\p{L}$€£¥%°‰]+[²2]?`)

// suffix parses scale words, percent and units after the digits. known is false if the digits are part of a word.
func (f *figure) suffix(text string, end int) (powers []int, known bool) {
	powers = []int{0}

	for attached := true; ; attached = false {
		space := gap(text[end:])
		if f.scaled {
			space += joint(text[end+space:])
		}

		rest := text[end+space:]
		word := suffixWord.FindString(rest)
		var length int

		switch tens := lexicon.Scale(strings.TrimRight(word, "$€£")); {
		case word == "":
			return powers, true
		case f.scales(word, tens):
			powers = tens
			length = f.takeScale(word, rest)

			if tens == nil {
				powers = []int{6} // "$5m"
			}
		case attached && space == 0 && ordinal(word):
			f.ordinal, f.to = true, end+len(word)

			return powers, true
		default:
			length = f.takeUnit(word, rest)
		}

		if length == 0 {
			return powers, space > 0 || !attached
		}

		end += space + length
		f.to = end
	}
}

// joint returns the length of the word between a scale word and a currency: "millions d'euros".
func joint(text string) int {
	for _, join := range []string{"d’", "d'", "de "} {
		if strings.HasPrefix(text, join) {
			return len(join)
		}
	}

	return 0
}

// scales reports whether a word is a scale word here. "m" without a currency is a metre, and "B" without a unit is a
// name.
func (f *figure) scales(word string, tens []int) bool {
	if f.scaled || f.percent {
		return false
	}

	return (tens != nil && (word != "B" || f.unit != "")) || (word == "m" && lexicon.IsMoney(f.unit))
}

// takeScale consumes a scale word, with the currency or the point at its end: "M€", "Mio.". It returns its length.
func (f *figure) takeScale(word, rest string) int {
	f.scaled = true

	if money := lexicon.Unit(strings.TrimLeft(word, "kMd")); lexicon.IsMoney(money) {
		f.unit = money
	} else if strings.HasPrefix(rest[len(word):], ".") && len(word) == 3 && word != "mio" {
		return len(word) + 1
	}

	return len(word)
}

// takeUnit consumes a unit and returns its length, or 0 if the word is not a unit.
func (f *figure) takeUnit(word, rest string) int {
	unit, length := lexicon.Unit(strings.ToLower(word)), len(word)

	if after, found := strings.CutPrefix(rest[length:], " cent"); found && (word == "per" || word == "pour") {
		unit, length = "%", len(rest)-len(after)
	}

	behind, _ := utf8.DecodeRuneInString(rest[length:])

	switch {
	case unicode.IsDigit(behind), len(word) == 1 && (behind == '’' || behind == '\''): // the currency of the next number, or "s’élève"
		return 0
	case strings.HasPrefix(word, "Prozentpunkt"):
		f.percent, f.unit = true, "%"
	case unit == "" || f.unit != "":
		return 0
	case unit == "%":
		f.percent, f.unit = true, "%"
	default:
		f.unit = unit
	}

	return length
}

func ordinal(word string) bool {
	return slices.Contains([]string{"st", "nd", "rd", "th", "er", "ère", "re", "e", "ème"}, word)
}

// nearnessOf interprets the words before a number.
func nearnessOf(before string) lexicon.Nearness {
	before = strings.ToLower(before[max(0, len(before)-24):])
	if strings.HasSuffix(strings.TrimSpace(before), "~") {
		return lexicon.About
	}

	words := strings.Fields(before)
	if len(words) == 0 {
		return lexicon.Exactly
	}

	last, earlier := strings.Trim(words[len(words)-1], ".(*_"), ""
	if len(words) > 1 {
		earlier = strings.Trim(words[len(words)-2], "(*_")
	}

	return lexicon.Near(earlier, last)
}

// loosen accepts trailing zeros of a whole number as rounded digits.
func (f *figure) loosen() {
	for i, r := range f.values {
		if digits := r.value.Num().String(); r.value.IsInt() && r.value.Sign() != 0 && !f.scaled {
			f.values[i].loose = power(len(digits) - len(strings.TrimRight(digits, "0")))
		}
	}
}
