package catalog

import (
	"encoding/hex"
	"slices"
	"strings"

	"github.com/google/uuid"

	"quern.dev/quern/internal/lexicon"
)

// A document is the tsvector of a dataset for PostgreSQL's text search. Its lexemes are words, each with the weight
// of the best part of the dataset that it occurs in, and words with a sign before them:
//
//	=ordersshop   the whole name
//	<ord          the beginning of a word of the name
//	~oders        a word of the name or of a column without one of its letters
//	+orders       a word of the name, so that the index alone can tell that it is in the name
//	@a… @n…       the account and the namespace, so that the index finds words within them
//	@s…           somebody that the dataset itself is shared with; a trigger adds it
const (
	signWhole     = "="
	signBeginning = "<"
	signSlip      = "~"
	signName      = "+"
	signAccount   = "@a"
	signNamespace = "@n"
	signGrantee   = "@s"
)

// weight is the part of a dataset that a word occurs in, the best first.
type weight byte

const (
	inName        weight = 'A'
	inColumn      weight = 'B'
	inDescription weight = 'C'
	inValue       weight = 'D'
)

// Limits of what is searched. They keep a document within a few database pages, whatever its owner writes.
const (
	maxWhole            = 256 // characters of a name
	maxColumnWords      = 400
	maxSlipWords        = 100 // words of the columns that are also indexed with typing errors
	maxDescriptionWords = 800
	maxValues           = 500
	maxValueBytes       = 16 << 10
)

// searched is the content that a document is made from.
type searched struct {
	account, dataset, namespace uuid.UUID
	name                        string
	definition                  Definition
	columns                     []Column
	values                      []string
}

func (s searched) document() string {
	d := document{}
	d.add(inName, signAccount+hex.EncodeToString(s.account[:]), signNamespace+hex.EncodeToString(s.namespace[:]))
	d.addName(s.name)
	d.addColumns(s.columns)
	d.addDescriptions(s.definition)

	for _, value := range s.values {
		for _, word := range lexicon.IndexWords(value) {
			d.add(inValue, lexicon.Forms(word)...)
		}
	}

	return d.String()
}

// document maps each lexeme to its weight.
type document map[string]weight

func (d document) add(at weight, lexemes ...string) {
	for _, lexeme := range lexemes {
		if has, ok := d[lexeme]; !ok || at < has {
			d[lexeme] = at
		}
	}
}

func (d document) addName(name string) {
	words := identifiers(name)
	d.add(inName, marked(signWhole, lexicon.Forms(whole(name)))...)

	for _, word := range words {
		d.add(inName, lexicon.Forms(word)...)
		d.add(inName, marked(signName, lexicon.Forms(word))...)
		d.add(inName, marked(signBeginning, beginnings(word))...)
		d.add(inName, marked(signSlip, slips(word))...)
	}
}

func (d document) addColumns(columns []Column) {
	met := 0

	for _, column := range columns {
		for _, word := range identifiers(column.Name) {
			if met++; met > maxColumnWords {
				return
			}

			if _, again := d[word]; !again && met <= maxSlipWords {
				d.add(inColumn, marked(signSlip, slips(word))...)
			}

			d.add(inColumn, lexicon.Forms(word)...)
		}
	}
}

// addDescriptions adds the description of the dataset, then those of its columns in the order of their names.
func (d document) addDescriptions(definition Definition) {
	texts := []string{definition.DataDescription}

	columns := make([]string, 0, len(definition.SchemaDefinition))
	for column := range definition.SchemaDefinition {
		columns = append(columns, column)
	}

	slices.Sort(columns)

	for _, column := range columns {
		texts = append(texts, column, definition.SchemaDefinition[column])
	}

	met := 0

	for _, text := range texts {
		for _, word := range lexicon.IndexWords(text) {
			if met++; met > maxDescriptionWords {
				return
			}

			d.add(inDescription, lexicon.Forms(word)...)
		}
	}
}

// String returns the document as tsvector text. No lexeme contains a quote or a backslash. A weight needs a position,
// but its value does not matter.
func (d document) String() string {
	lexemes := make([]string, 0, len(d))
	for lexeme, at := range d {
		lexemes = append(lexemes, "'"+lexeme+"':1"+string(at))
	}

	slices.Sort(lexemes)

	return strings.Join(lexemes, " ")
}

// whole folds the words of a name or a search and joins them without separators, so that "order lines" matches
// "orderlines".
func whole(text string) string {
	var words strings.Builder
	for _, word := range lexicon.SplitWords(text) {
		words.WriteString(lexicon.FoldWord(word))
	}

	if runes := []rune(words.String()); len(runes) > maxWhole {
		return string(runes[:maxWhole])
	}

	return words.String()
}

// identifiers returns the words of a name, and the parts of its compound words.
func identifiers(name string) []string {
	words := lexicon.IndexWords(name)

	for _, word := range lexicon.SplitWords(name) {
		for _, piece := range lexicon.Pieces(word) {
			words = append(words, lexicon.FoldWord(piece))
		}
	}

	return words
}

func marked(sign string, words []string) []string {
	list := make([]string, len(words))
	for i, word := range words {
		list[i] = sign + word
	}

	return list
}

// bounded returns the first values, each shortened, within the limits of what is searched. It removes bytes that
// PostgreSQL does not accept.
func bounded(values []string) []string {
	list, size := make([]string, 0, min(len(values), maxValues)), 0

	for _, value := range values {
		value = strings.ReplaceAll(strings.ToValidUTF8(value, " "), "\x00", " ")
		if runes := []rune(value); len(runes) > lexicon.MaxLetters {
			value = string(runes[:lexicon.MaxLetters])
		}

		if size += len(value); len(list) == maxValues || size > maxValueBytes {
			break
		}

		list = append(list, value)
	}

	return list
}
