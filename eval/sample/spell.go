package sample

import "strings"

const maxSpelled = 99

// spell writes a number from 2 to 99 in words.
func spell(n int, in Format) string {
	units := [3][]string{
		strings.Fields("zero one two three four five six seven eight nine ten eleven twelve thirteen fourteen fifteen sixteen seventeen eighteen nineteen"),
		strings.Fields("null eins zwei drei vier fünf sechs sieben acht neun zehn elf zwölf dreizehn vierzehn fünfzehn sechzehn siebzehn achtzehn neunzehn"),
		strings.Fields("zéro un deux trois quatre cinq six sept huit neuf dix onze douze treize quatorze quinze seize dix-sept dix-huit dix-neuf"),
	}[in]
	tens := [3][]string{
		strings.Fields("- - twenty thirty forty fifty sixty seventy eighty ninety"),
		strings.Fields("- - zwanzig dreißig vierzig fünfzig sechzig siebzig achtzig neunzig"),
		strings.Fields("- - vingt trente quarante cinquante soixante soixante quatre-vingt quatre-vingt"), //nolint:dupword,misspell // French: seventy is sixty and ten
	}[in]

	ten, unit := n/10, n%10

	switch {
	case n < 20:
		return units[n]
	case in == English && unit == 0:
		return tens[ten]
	case in == English:
		return tens[ten] + "-" + units[unit]
	case in == German && unit == 0:
		return tens[ten]
	case in == German:
		return strings.TrimSuffix(units[unit], map[bool]string{true: "s"}[unit == 1]) + "und" + tens[ten]
	}

	if ten == 7 || ten == 9 {
		unit += 10
	}

	switch {
	case n == 80:
		return "quatre-vingts"
	case unit == 0:
		return tens[ten]
	case unit == 1 && ten < 8, unit == 11 && ten == 7:
		return tens[ten] + " et " + units[unit]
	default:
		return tens[ten] + "-" + units[unit]
	}
}
