package query

import (
	"context"
	"encoding/json"
	"fmt"
	"math"
	"strconv"
	"strings"

	"quern.dev/quern/internal/auth"
	"quern.dev/quern/internal/catalog"
	"quern.dev/quern/internal/engine"
	"quern.dev/quern/internal/fault"
)

// Draft writes a definition from the profile of a dataset. Nothing is saved.
//
// Faults: NotFound, InvalidState while the dataset has no profile.
func (q *Query) Draft(ctx context.Context, who auth.Principal, at catalog.Path) (catalog.Definition, error) {
	made, err := q.profile(ctx, who, at)
	if err == nil && made == nil {
		return catalog.Definition{}, fault.New(fault.InvalidState, "The dataset has no profile yet, and a draft needs one. The profile is computed when no rows have been added for a while. Try again later.")
	}

	if err != nil {
		return catalog.Definition{}, err
	}

	return made.draft(), nil
}

const (
	maxDescription = 10_000 // characters of the description of the data
	maxSentence    = 500    // characters of the description of a column
	maxShown       = 60     // characters of a value
	fewValues      = 10     // up to this number, all values are listed
	someNames      = 20
	often          = 10  // lowest percentage of the rows for a value to be named
	typicalShape   = 0.9 // lowest share of the rows for a shape to describe the column
	percent        = 100
)

func (p *Profile) draft() catalog.Definition {
	drafted := catalog.Definition{DataDescription: cut(p.describe(), maxDescription), SchemaDefinition: map[string]string{}}

	for _, c := range p.Columns {
		sentences := describeColumn(c, p.Rows)

		for _, j := range p.Joins {
			if j.Column == c.Name {
				sentences = append(sentences, fmt.Sprintf("Probably the %s of %s.", j.To, j.With.Name))

				break
			}
		}

		drafted.SchemaDefinition[c.Name] = cut(strings.Join(sentences, " "), maxSentence)
	}

	return drafted
}

// describe returns sentences about what a row is, the number of rows and columns, the period and the joins.
func (p *Profile) describe() string {
	if p.Rows == 0 {
		return "No rows yet."
	}

	var sentences []string

	if len(p.Keys) > 0 {
		sentences = append(sentences, fmt.Sprintf("One row for each %s.", strings.Join(p.Keys[0], " and ")))
	}

	sentences = append(sentences, plural(p.Rows, "row")+" with "+plural(int64(len(p.Columns)), "column")+": "+p.names()+".")

	for _, c := range p.Columns {
		if (c.Type == engine.Date || c.Type == engine.Timestamp) && c.Min != nil {
			sentences = append(sentences, fmt.Sprintf("%s goes from %s to %s.", c.Name, shown(c.Min), shown(c.Max)))

			break
		}
	}

	for i, j := range p.Joins {
		if i < fewValues {
			sentences = append(sentences, fmt.Sprintf("%s probably joins with %s of %s.", j.Column, j.To, j.With.Name))
		}
	}

	return strings.Join(sentences, " ")
}

func (p *Profile) names() string {
	var names []string
	for _, c := range p.Columns[:min(len(p.Columns), someNames)] {
		names = append(names, c.Name)
	}

	text := strings.Join(names, ", ")
	if more := len(p.Columns) - someNames; more > 0 {
		text += fmt.Sprintf(" and %d more", more)
	}

	return text
}

// describeColumn returns sentences about the type of a column, its values, and how many are missing.
func describeColumn(c ColumnProfile, rows int64) []string {
	filled := rows - c.Nulls
	if filled == 0 {
		return []string{typeName(c.Type) + ".", "Always empty."}
	}

	first := typeName(c.Type)
	if c.DistinctExact && c.Distinct == rows && rows > 1 {
		first += ", different in every row"
	}

	sentences := append([]string{first + "."}, describeValues(c, filled)...)

	if c.Nulls > 0 {
		sentences = append(sentences, "Empty in "+share(c.Nulls, rows)+" of the rows.")
	}

	return sentences
}

func describeValues(c ColumnProfile, filled int64) (sentences []string) {
	isText := c.Type == engine.Varchar

	switch {
	case c.DistinctExact && c.Distinct == 1:
		return []string{"Always " + shown(c.TopValues[0].Value) + "."}
	case c.DistinctExact && c.Distinct <= fewValues && c.Distinct < filled && (isText || c.Type == engine.Boolean):
		var values []string
		for _, top := range c.TopValues {
			values = append(values, shown(top.Value)+" ("+share(top.Count, filled)+")")
		}

		return []string{"One of " + strings.Join(values, ", ") + "."}
	case c.Type == engine.JSON:
		return nil
	case !isText:
		sentence := "From " + shown(c.Min) + " to " + shown(c.Max)
		if c.Mean != nil {
			sentence += ", " + strconv.FormatFloat(*c.Mean, 'g', 6, 64) + " on average"
		}

		return []string{sentence + "."}
	}

	if len(c.Shapes) > 0 && c.Shapes[0].Share >= typicalShape {
		sentences = append(sentences, "Looks like "+c.Shapes[0].Shape+", where A and a are letters and 9 is a digit.")
	} else if c.Shortest != nil && c.Longest != nil {
		sentences = append(sentences, fmt.Sprintf("%d to %s long.", *c.Shortest, plural(*c.Longest, "character")))
	}

	var examples []string
	for _, example := range c.Examples[:min(len(c.Examples), 3)] {
		examples = append(examples, shown(example))
	}

	if top := c.TopValues; len(top) > 0 && top[0].Count*percent >= filled*often {
		sentences = append(sentences, "Most often "+shown(top[0].Value)+" ("+share(top[0].Count, filled)+").")
	}

	return append(sentences, "For example "+strings.Join(examples, ", ")+".")
}

// typeName returns the name of a type in words.
func typeName(kind string) string {
	name, known := map[string]string{
		engine.Boolean: "True or false", engine.Bigint: "Whole number", engine.Double: "Number", engine.Date: "Date",
		engine.Timestamp: "Date and time", engine.Time: "Time of day", engine.Varchar: "Text", engine.JSON: "JSON",
	}[kind]

	switch {
	case known:
		return name
	case strings.HasSuffix(kind, ",0)"):
		return "Whole number"
	default:
		return "Decimal number"
	}
}

// shown returns a value as text for a sentence. Texts are quoted and cut to maxShown characters.
func shown(value json.RawMessage) string {
	var text string
	if json.Unmarshal(value, &text) != nil {
		return string(value)
	}

	return `"` + cut(strings.Join(strings.Fields(text), " "), maxShown) + `"`
}

// cut shortens a text to at most length characters.
func cut(text string, length int) string {
	letters := []rune(text)
	if len(letters) <= length {
		return text
	}

	return string(letters[:length-1]) + "…"
}

func share(part, whole int64) string {
	switch rounded := math.Round(percent * float64(part) / float64(max(whole, 1))); {
	case rounded == 0 && part > 0:
		return "less than 1 %"
	case rounded == percent && part < whole:
		return "more than 99 %"
	default:
		return fmt.Sprintf("%.0f %%", rounded)
	}
}

// plural returns a number with its noun; the digits are in groups of three.
func plural(n int64, noun string) string {
	digits := strconv.FormatInt(n, 10)
	for i := len(digits) - 3; i > 0; i -= 3 {
		digits = digits[:i] + "," + digits[i:]
	}

	if n != 1 {
		noun += "s"
	}

	return digits + " " + noun
}
