package catalog

import (
	"encoding/hex"
	"slices"
	"strings"

	"github.com/google/uuid"
)

// A document is what PostgreSQL's text search keeps of a dataset. Its lexemes are words, each with the weight of the
// best place where it stands, and words with a sign before them that say more:
//
//	=ordersshop   the whole name
//	<ord          the beginning of a word of the name
//	~oders        a word of the name or of a column without one of its letters
//	+orders       a word of the name, so that the index alone knows
//	@a… @n…       the account and the namespace, so that the index finds words within them
const (
	signWhole     = "="
	signBeginning = "<"
	signSlip      = "~"
	signName      = "+"
	signAccount   = "@a"
	signNamespace = "@n"
)

// weight is where a word stands; the best first.
type weight byte

const (
	inName        weight = 'A'
	inColumn      weight = 'B'
	inDescription weight = 'C'
	inValue       weight = 'D'
)

// How much of a dataset is searched. A document stays a few pages of the database, whatever its owner writes.
const (
	maxWhole            = 256 // letters of a name
	maxColumnWords      = 400
	maxSlipWords        = 100 // of the columns
	maxDescriptionWords = 800
	maxValues           = 500
	maxValueBytes       = 16 << 10
)

// searched is what a document is made of.
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
		for _, word := range foldAll(value) {
			d.add(inValue, forms(word)...)
		}
	}

	return d.String()
}

// document has the weight of each lexeme.
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
	d.add(inName, marked(signWhole, forms(whole(name)))...)

	for _, word := range words {
		d.add(inName, forms(word)...)
		d.add(inName, marked(signName, forms(word))...)
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

			d.add(inColumn, forms(word)...)
		}
	}
}

// addDescriptions: first that of the dataset, then those of its columns, in the order of their names.
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
		for _, word := range foldAll(text) {
			if met++; met > maxDescriptionWords {
				return
			}

			d.add(inDescription, forms(word)...)
		}
	}
}

// String is the document as PostgreSQL reads it. No lexeme has a quote or a backslash. A weight needs a position, and
// any will do.
func (d document) String() string {
	lexemes := make([]string, 0, len(d))
	for lexeme, at := range d {
		lexemes = append(lexemes, "'"+lexeme+"':1"+string(at))
	}

	slices.Sort(lexemes)

	return strings.Join(lexemes, " ")
}

// whole is a name or a search without anything between its words.
func whole(text string) string {
	var words strings.Builder
	for _, word := range split(text) {
		words.WriteString(fold(word))
	}

	if runes := []rune(words.String()); len(runes) > maxWhole {
		return string(runes[:maxWhole])
	}

	return words.String()
}

// identifiers are the words of a name, and those that they are put together of.
func identifiers(name string) []string {
	words := foldAll(name)

	for _, word := range split(name) {
		for _, piece := range pieces(word) {
			words = append(words, fold(piece))
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

// bounded is as many values, and as much of each, as is searched, in the form that the database takes.
func bounded(values []string) []string {
	list, size := make([]string, 0, min(len(values), maxValues)), 0

	for _, value := range values {
		value = strings.ReplaceAll(strings.ToValidUTF8(value, " "), "\x00", " ")
		if runes := []rune(value); len(runes) > maxLetters {
			value = string(runes[:maxLetters])
		}

		if size += len(value); len(list) == maxValues || size > maxValueBytes {
			break
		}

		list = append(list, value)
	}

	return list
}
