package agent

import (
	"cmp"
	"context"
	"slices"
	"strings"

	"quern.dev/quern/internal/auth"
	"quern.dev/quern/internal/catalog"
	"quern.dev/quern/internal/meaning"
	"quern.dev/quern/internal/planner"
	"quern.dev/quern/internal/query"
)

// Scope is what suggestions are about: a dataset, a namespace, or everything that the caller sees.
type Scope struct {
	Username, Namespace string // empty for everything
	Dataset             string // empty for all of the namespace
	Limit               int
}

// Suggestion is a question that the rules answer. It has names and no values, so whoever sees the dataset may see it.
type Suggestion struct {
	Username, Namespace, Dataset string
	Question, Interpretation     string
}

// The limits of the work for suggestions.
const (
	suggestFrom = 4  // datasets
	suggestAsk  = 16 // questions that are tried
	suggestSeen = 50 // datasets of which the latest are chosen
	groups      = 30 // largest number of values by which a suggestion groups
)

// Suggest returns questions about the datasets that changed last, which the rules understand in only one way. The datasets take turns.
//
// Faults: NotFound.
func (t Tools) Suggest(ctx context.Context, who auth.Principal, want Scope) (list []Suggestion, err error) {
	items, err := t.inScope(ctx, who, want)
	if err != nil {
		return nil, err
	}

	about, err := t.Query.About(ctx, who, items, func(catalog.Item) bool { return true })
	if err != nil {
		return nil, err
	}

	tried, left := 0, make([][]string, len(about))
	for i, d := range about {
		left[i] = questionsAbout(d)
	}

	for slices.ContainsFunc(left, func(questions []string) bool { return len(questions) > 0 }) {
		for i, d := range about {
			if len(left[i]) == 0 {
				continue
			}

			if len(list) == want.Limit || tried == suggestAsk {
				return list, nil
			}

			question := left[i][0]
			left[i] = left[i][1:]
			tried++

			interpretation, err := t.understood(ctx, who, d.Item, question, want.Dataset != "")
			if err != nil {
				return nil, err
			}

			if interpretation != "" {
				list = append(list, Suggestion{d.Owner, d.Namespace, d.Name, question, interpretation})
			}
		}
	}

	return list, nil
}

// inScope returns the datasets with rows that changed last.
func (t Tools) inScope(ctx context.Context, who auth.Principal, want Scope) (items []catalog.Item, err error) {
	at := catalog.Path{Username: want.Username, Namespace: want.Namespace, Dataset: want.Dataset}

	switch {
	case want.Dataset != "":
		one, err := t.Catalog.Describe(ctx, who, at)
		if err != nil {
			return nil, err
		}

		items = []catalog.Item{{Dataset: one.Dataset, Owner: one.Owner}}
	case want.Namespace != "":
		items, _, err = t.Catalog.Datasets(ctx, who, at, [16]byte{}, suggestSeen)
	default:
		items, _, err = t.Catalog.All(ctx, who, catalog.Position{}, suggestSeen)
	}

	items = slices.DeleteFunc(items, func(d catalog.Item) bool { return d.RowCount == 0 })
	slices.SortStableFunc(items, func(a, b catalog.Item) int { return b.UpdatedAt.Compare(a.UpdatedAt) })

	return items[:min(len(items), suggestFrom)], err
}

// understood returns the interpretation of a question, or an empty text if the rules would not answer it.
func (t Tools) understood(ctx context.Context, who auth.Principal, d catalog.Item, question string, alone bool) (string, error) {
	asked := Question{Username: d.Owner, Namespace: d.Namespace, Text: question}
	if alone {
		asked.Datasets = []string{d.Name}
	}

	plan, _, err := (&interpreter{inquiry: &inquiry{tools: t, who: who, question: asked}}).plan(ctx)
	if err != nil || plan.Outcome != planner.Answer {
		return "", err
	}

	return plan.Candidates[0].Interpretation, nil
}

// questionsAbout returns questions that fit the columns of a dataset, the most telling first. They are only attempts.
func questionsAbout(d query.About) (list []string) {
	rows := words(d.Name)
	category, other := columnOf(d, 0, meaning.Category), columnOf(d, 1, meaning.Category)
	amount := cmp.Or(columnOf(d, 0, meaning.Amount), columnOf(d, 0, meaning.Duration), columnOf(d, 0, meaning.Count), columnOf(d, 0, meaning.Balance))
	price, date := cmp.Or(columnOf(d, 0, meaning.Price), columnOf(d, 0, meaning.Share)), columnOf(d, 0, meaning.Date)

	add := func(question string, parts ...string) {
		if !slices.Contains(parts, "") {
			list = append(list, question)
		}
	}

	add("What is the total "+amount+" of "+rows+" by "+category+"?", amount, category)
	add("How many "+rows+" are there by month?", date)
	add("Which "+category+" has the most "+rows+"?", category)
	add("What is the total "+amount+" of "+rows+" by month?", amount, date)
	add("What is the average "+price+" of "+rows+" by "+category+"?", price, category)
	add("How many "+rows+" are there by "+other+"?", other)
	add("What is the average "+amount+" of "+rows+"?", amount)
	add("How many " + rows + " are there?")

	return list
}

// columnOf returns the words for the nth column with a role, or an empty text. A category must have few values, so that an answer is short.
func columnOf(d query.About, n int, role meaning.Role) string {
	for _, c := range d.Columns {
		if said := d.Meaning.Columns[c.Name]; said.Role != role || said.NotForFigures || role == meaning.Category && !isShort(d, c.Name) {
			continue
		}

		if n == 0 {
			return words(c.Name)
		}

		n--
	}

	return ""
}

func isShort(d query.About, column string) bool {
	return d.Profile != nil && slices.ContainsFunc(d.Profile.Columns, func(c query.ColumnProfile) bool {
		return c.Name == column && c.Distinct > 1 && c.Distinct <= groups
	})
}

// words returns a name as people would write it in a question.
func words(name string) string {
	return strings.Join(strings.FieldsFunc(name, func(r rune) bool { return r == '_' || r == '-' || r == '.' || r == ' ' }), " ")
}
