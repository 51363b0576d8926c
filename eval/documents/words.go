package documents

import (
	"fmt"
	"math/rand/v2"
	"strconv"
	"strings"
	"time"
)

func decimal(n int) string { return strconv.Itoa(n) }

// pick returns one of some texts.
func pick[T any](random *rand.Rand, from []T) T { return from[random.IntN(len(from))] }

// grouped returns a whole number with the sign between thousands.
func grouped(n int, sign string) string {
	text := strconv.Itoa(n)
	for at := len(text) - 3; at > 0; at -= 3 {
		text = text[:at] + sign + text[at:]
	}

	return text
}

// hundredths returns a number in the style of the language: 1,234.50 or 1.234,50.
func (s *sheet) hundredths(n int) value {
	sign := ""
	if n < 0 {
		sign, n = "-", -n
	}

	want := fmt.Sprintf("%s%d.%02d", sign, n/100, n%100)

	return value{fmt.Sprintf("%s%s%s%02d", sign, grouped(n/100, s.in(",", ".")), s.in(".", ","), n%100), canonical(want)}
}

// tenths is hundredths with one digit.
func (s *sheet) tenths(n int) value {
	return value{fmt.Sprintf("%s%s%d", grouped(n/10, s.in(",", ".")), s.in(".", ","), n%10), canonical(fmt.Sprintf("%d.%d", n/10, n%10))}
}

func (s *sheet) whole(n int) value { return value{grouped(n, s.in(",", ".")), strconv.Itoa(n)} }

func canonical(number string) string {
	if strings.Contains(number, ".") {
		number = strings.TrimSuffix(strings.TrimRight(number, "0"), ".")
	}

	return number
}

// euros returns an amount with its currency before or after it.
func (s *sheet) euros(cents int) value {
	return s.hundredths(cents).with(s.in("€", ""), s.in("", " €"))
}

func (v value) with(before, after string) value { return value{before + v.said + after, v.want} }

func same(text string) value { return value{text, text} }

// dateForm is a way to write a date.
type dateForm int

const (
	inDigits dateForm = iota // 07.03.2026, 2026-03-07
	inWords                  // 7. März 2026, 7 March 2026
	monthsFirst
)

func germanMonths() []string {
	return []string{"Januar", "Februar", "März", "April", "Mai", "Juni", "Juli", "August", "September", "Oktober", "November", "Dezember"}
}

func (s *sheet) date(at time.Time, form dateForm) value {
	var said string

	switch {
	case s.language == German && form == inDigits:
		said = at.Format("02.01.2006")
	case s.language == German:
		said = fmt.Sprintf("%d. %s %d", at.Day(), germanMonths()[at.Month()-1], at.Year())
	case form == inDigits:
		said = at.Format(time.DateOnly)
	case form == monthsFirst:
		said = at.Format("January 2, 2006")
	default:
		said = at.Format("2 January 2006")
	}

	return value{said, at.Format(time.DateOnly)}
}

// day returns a day of 2026.
func (s *sheet) day() time.Time {
	return time.Date(2026, 1, 1+s.random.IntN(300), 0, 0, 0, 0, time.UTC)
}

// month returns a month as CVs write it.
func (s *sheet) month(at time.Time) value { return same(at.Format("01/2006")) }

// goods are what is sold. Some names differ only in a number.
func (s *sheet) goods() []string {
	if s.language == German {
		return []string{
			"Sechskantschraube M6 x 40", "Sechskantschraube M6 x 60", "Sechskantschraube M8 x 40", "Flügelmutter M6", "Unterlegscheibe 6,4 mm", "Winkelverbinder 90 Grad",
			"Holzleim wasserfest", "Schleifpapier Körnung 120", "Schleifpapier Körnung 240", "Bohrer HSS 5 mm", "Bohrer HSS 6 mm", "Dübel 8 x 40", "Kabelbinder schwarz", "Arbeitshandschuhe Größe 9",
			"Abdeckfolie 4 x 5 m", "Zollstock 2 m", "Cuttermesser", "Acrylfarbe weiß matt",
		}
	}

	return []string{
		"Hex bolt M6 x 40", "Hex bolt M6 x 60", "Hex bolt M8 x 40", "Wing nut M6", "Washer 6.4 mm", "Angle bracket 90 degrees",
		"Wood glue waterproof", "Sandpaper grit 120", "Sandpaper grit 240", "Drill bit HSS 5 mm", "Drill bit HSS 6 mm", "Wall plug 8 x 40", "Cable ties black", "Work gloves size 9",
		"Masking film 4 x 5 m", "Folding rule 2 m", "Utility knife", "Acrylic paint white matt",
	}
}

func (s *sheet) companies() []string {
	if s.language == German {
		return []string{"Altfeld Werkzeuge GmbH", "Nordhain Metallbau", "Rosenau Papier AG", "Birkenhof Lebensmittel", "Steinach Logistik", "Lindtal Druck KG", "Moorwerk Anlagenbau", "Heidesee Textil"}
	}

	return []string{"Altfield Tools Ltd", "Northgrove Metalworks", "Rosebank Paper plc", "Birchyard Foods", "Stonebrook Logistics", "Limevale Print", "Moorworks Engineering", "Heathlake Textiles"}
}

func (s *sheet) places() []string {
	if s.language == German {
		return []string{"Altfeld", "Nordhain", "Rosenau", "Birkenhof", "Steinach", "Lindtal", "Moorwerk", "Heidesee", "Alt-Rosenau"}
	}

	return []string{"Altfield", "Northgrove", "Rosebank", "Birchyard", "Stonebrook", "Limevale", "Moorworks", "Heathlake", "New Rosebank"}
}

func (s *sheet) person() string {
	return pick(s.random, []string{"M. Berger", "A. Keller", "S. Novak", "J. Moss", "K. Winter"})
}
