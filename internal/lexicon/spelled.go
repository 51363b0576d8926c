package lexicon

import "strings"

// spelledSimple returns the number that a single word in lower case means in English, German or French, below one hundred.
func spelledSimple(word string) (int, bool) {
	for i, words := range [...]string{
		"zero null zéro", "one eins ein eine einen un une", "two zwei deux", "three drei trois", "four vier quatre", "five fünf cinq", "six sechs", "seven sieben sept",
		"eight acht huit", "nine neun neuf", "ten zehn dix", "eleven elf onze", "twelve zwölf douze", "thirteen dreizehn treize", "fourteen vierzehn quatorze",
		"fifteen fünfzehn quinze", "sixteen sechzehn seize", "seventeen siebzehn", "eighteen achtzehn", "nineteen neunzehn",
	} {
		if hasWord(words, word) {
			return i, true
		}
	}

	for i, words := range [...]string{
		"twenty zwanzig vingt", "thirty dreißig dreissig trente", "forty vierzig quarante", //nolint:misspell // French
		"fifty fünfzig cinquante", "sixty sechzig soixante", "seventy siebzig septante",
		"eighty achtzig huitante", "ninety neunzig nonante",
	} {
		if hasWord(words, word) {
			return 10 * (i + 2), true
		}
	}

	return 0, false
}

func hasWord(list, word string) bool {
	for one := range strings.FieldsSeq(list) {
		if one == word {
			return true
		}
	}

	return false
}

// spelledGerman returns the number of a German compound below one thousand.
func spelledGerman(word string) (int, bool) {
	if value, is := spelledSimple(word); is {
		return value, true
	}

	if before, after, found := strings.Cut(word, "hundert"); found {
		hundreds, rest := 1, 0
		is := true

		if before != "" {
			hundreds, is = spelledSimple(before)
		}

		if after = strings.TrimPrefix(after, "und"); is && after != "" {
			rest, is = spelledGerman(after)
		}

		return 100*hundreds + rest, is && hundreds < 10 && rest < 100
	}

	before, after, found := strings.Cut(word, "und")
	unit, isUnit := spelledSimple(before)
	tens, isTens := spelledSimple(after)

	return tens + unit, found && isUnit && isTens && unit > 0 && unit < 10 && tens >= 20
}

// joinsSpelled reports whether "and" or "et" goes on with a number: "two hundred and five", "vingt et un".
func joinsSpelled(words []string, value int) bool {
	if len(words) < 2 || value == 0 {
		return false
	}

	next, is := spelledSimple(words[1])

	return is && (words[0] == "and" && value%100 == 0 || words[0] == "et" && (next == 1 || next == 11) && value%100 >= 20)
}

// Spelled returns the number that the first words mean, in English, German or French, and how many words it has; 0 if they
// are no number. The words are in lower case. "twenty three" are the words of twenty-three.
func Spelled(words []string) (value, used int) {
	for i, word := range words {
		one, is := spelledGerman(word)

		switch tens := value % 100; {
		case i > 0 && (word == "hundred" || word == "cent" || word == "cents") && value > 0 && value < 10:
			value, used = 100*value, i+1
		case i == 0 && word == "cent", i == 0 && word == "hundred": // a coin; "a hundred" is about one hundred
			return 0, 0
		case used == i && joinsSpelled(words[i:], value):
		case (word == "vingt" || word == "vingts") && tens == 4 && words[i-1] == "quatre":
			value, used = value-4+80, i+1
		case !is || i > 0 && used < i && words[i-1] != "and" && words[i-1] != "et":
			return value, used
		case i == 0 || tens == 0 && value >= 100 && one > 0, tens >= 20 && tens%10 == 0 && one < 10 && one > 0, (tens == 60 || tens == 80) && one < 20 && one > 9, tens == 10 && one > 6 && one < 10 && words[i-1] == "dix",
			(tens == 70 || tens == 90) && one > 6 && one < 10 && words[i-1] == "dix":
			value, used = value+one, i+1
		default:
			return value, used
		}
	}

	return value, used
}
