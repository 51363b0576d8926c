package lexicon

import "strings"

// Relation is how a word compares the value of a row with those of other rows: "highest", "more", "fell".
type Relation int

// The relations.
const (
	NoRelation Relation = iota
	Highest
	Lowest
	Higher
	Lower
	Rose
	Fell
)

// RelationOf returns the relation that a word in lower case states, in English, German or French. Some are two
// words, such as "went up" and "plus haut": after is the word after the first one.
func RelationOf(word, after string) Relation {
	switch {
	case word == "plus" || word == "moins":
		return frenchDegree(word, after)
	case hasWord("went goes gone going go", word) && after == "up":
		return Rose
	case hasWord("went goes gone going go", word) && after == "down":
		return Fell
	}

	for relation, words := range map[Relation]string{
		Highest: "highest largest greatest biggest most meisten",
		Lowest:  "lowest smallest fewest least wenigsten",
		Higher:  "higher larger greater bigger more mehr supérieur supérieure supérieurs supérieures",
		Lower:   "lower smaller fewer less weniger inférieur inférieure inférieurs inférieures",
		Rose: `rose rises risen increased increases increase grew grows climbed climbs stieg steigt stiegen gestiegen wuchs wächst anstieg
			augmente augmenté progresse progressé hausse`,
		Fell: `fell falls fallen decreased decreases decrease declined declines dropped drops shrank sank sinks fiel fällt fielen sinkt gesunken gefallen rückgang
			baisse baissé diminue diminué recule reculé`,
	} {
		if hasWord(words, word) {
			return relation
		}
	}

	for stem, relation := range map[string]Relation{
		"höchste": Highest, "größte": Highest, "niedrigste": Lowest, "kleinste": Lowest, "geringste": Lowest,
		"höher": Higher, "größer": Higher, "niedriger": Lower, "kleiner": Lower, "geringer": Lower,
	} {
		if ending, found := strings.CutPrefix(word, stem); found && hasWord("e en er es em n r s m", ending) || found && ending == "" {
			return relation
		}
	}

	return NoRelation
}

// frenchDegree returns Higher for "plus élevé" and Lower for "plus faible". The article before it makes it a superlative.
func frenchDegree(word, after string) Relation {
	much := hasWord("haut haute hauts hautes élevé élevée élevés élevées grand grande grands grandes important importante importants importantes", after)
	little := hasWord("bas basse basses faible faibles petit petite petits petites", after)

	switch {
	case word == "plus" && much, word == "moins" && little:
		return Higher
	case word == "plus" && little, word == "moins" && much:
		return Lower
	}

	return NoRelation
}

// IsThan reports whether a word in lower case stands between the two sides of a comparison.
func IsThan(word string) bool { return hasWord("than als que qu à au aux", word) }

// Place returns the number that an ordinal word in lower case means, from 1 to 10, or 0.
func Place(word string) int {
	for i, words := range [...]string{
		"first premier première 1st", "second deuxième seconde 2nd", "third troisième 3rd", "fourth quatrième 4th", "fifth cinquième 5th", "sixth sixième 6th",
		"seventh septième 7th", "eighth huitième 8th", "ninth neuvième 9th", "tenth dixième 10th",
	} {
		if hasWord(words, word) {
			return i + 1
		}
	}

	for i, stem := range strings.Fields("erst zweit dritt viert fünft sechst siebt acht neunt zehnt") {
		if ending, found := strings.CutPrefix(word, stem); found && hasWord("e er en es em", ending) {
			return i + 1
		}
	}

	return 0
}

// IsRanking reports whether a word in lower case says that places are counted.
func IsRanking(word string) bool {
	return hasWord(`rank ranks ranked ranking place places placed position platz plätze stelle rang rangliste classement`, word)
}

// Times returns the factor that words in lower case mean, such as "twice" or "three times", and how many words they are.
func Times(words []string) (factor, used int) {
	switch {
	case hasWord("twice double doppelt doppelte", words[0]):
		return 2, 1
	case hasWord("thrice triple dreifach dreifache", words[0]):
		return 3, 1
	}

	if one, found := strings.CutSuffix(words[0], "mal"); found {
		if factor, is := spelledSimple(one); is && factor > 1 {
			return factor, 1
		}
	}

	if len(words) > 1 && hasWord("times mal fois", words[1]) {
		if factor, is := spelledSimple(words[0]); is && factor > 1 {
			return factor, 2
		}
	}

	return 0, 0
}

// Part returns the fraction that words in lower case mean, such as "half" or "two thirds", and how many words they are.
func Part(words []string) (part, of, used int) {
	parts := func(word string) int {
		switch {
		case hasWord("half hälfte moitié", word):
			return 2
		case hasWord("third thirds drittel tiers", word):
			return 3
		case hasWord("quarter quarters viertel quart quarts", word):
			return 4
		}

		return 0
	}

	if of := parts(words[0]); of == 2 {
		return 1, of, 1
	}

	if len(words) > 1 {
		count, isNumber := spelledSimple(words[0])
		if words[0] == "a" {
			count, isNumber = 1, true
		}

		if of := parts(words[1]); of > 2 && isNumber && count > 0 && count < of {
			return count, of, 2
		}
	}

	return 0, 0, 0
}

// IsHedge reports whether a word in lower case makes what follows it no statement about one row: "not the highest", "among
// the highest".
func IsHedge(word string) bool {
	return hasWord("not never no isn wasn aren nicht kein keine keinen keiner pas jamais among amongst parmi unter if wenn si", word)
}
