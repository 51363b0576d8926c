package exchange

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"
	"unicode"
	"unicode/utf8"

	"github.com/google/uuid"

	"quern.dev/quern/internal/auth"
	"quern.dev/quern/internal/catalog"
	"quern.dev/quern/internal/fault"
	"quern.dev/quern/internal/verified"
)

// Imported is what an import did, or would do.
type Imported struct {
	Datasets []DatasetChanges // those with changes
	Verified []QuestionChange // those that are added or changed
	Issues   []Issue          // what is not imported
	More     bool             // some verified questions are not imported yet: repeat the import to continue
}

// DatasetChanges are the changes of one dataset, which are made together.
type DatasetChanges struct {
	Dataset string
	Changes []Change
}

// QuestionChange is a verified question that is added, or changed.
type QuestionChange struct {
	Question string
	IsNew    bool
}

// Limits of one import. Statements of verified questions run, so what is left is done by repeating the import.
const (
	maxProved   = 50
	provingTime = 15 * time.Second
	maxIssues   = 500
)

// Import adds what a document says to the semantics of the datasets of a namespace that the caller may edit, and to its verified
// questions. It removes nothing. With trial it only says what it would do.
//
// Faults: NotFound; Forbidden if the caller may edit none of the datasets; ValidationFailed if the text is not a document; those of the systems behind.
func (x Exchange) Import(ctx context.Context, who auth.Principal, at catalog.Path, text string, trial bool) (done Imported, err error) {
	items, err := x.items(ctx, who, at) // first, so that only who may see the namespace learns about the document
	if err != nil {
		return done, err
	}

	mayEdit := func(item catalog.Item) bool {
		role := item.Role(who)

		return role != "" && !auth.Editor.Exceeds(role)
	}

	if len(items) > 0 && !slices.ContainsFunc(items, mayEdit) {
		return done, fault.New(fault.Forbidden, "This needs the role editor on the namespace or on one of its datasets.")
	}

	found, issues, err := read(text)
	if err != nil {
		return done, err
	}

	g := gathering{visible: map[string]catalog.Item{}, issues: issues, may: mayEdit}

	for _, item := range items {
		g.visible[strings.ToLower(item.Name)] = item
	}

	var questions []verified.Content

	for _, m := range found.Models {
		g.model(m)

		var ext modelExtension
		if g.read(m.Extensions, "model "+cut(m.Name), &ext) {
			questions = append(questions, ext.Verified...)
		}
	}

	done.Issues = g.issues

	for _, about := range g.found {
		if err := x.dataset(ctx, who, at, about, trial, &done); err != nil {
			return done, err
		}
	}

	if err := x.keep(ctx, who, at, questions, trial, &done); err != nil {
		return done, err
	}

	if len(done.Issues) > maxIssues {
		done.Issues = append(done.Issues[:maxIssues], Issue{"document", fmt.Sprintf("%d more entries are not imported.", len(done.Issues)-maxIssues)})
	}

	return done, nil
}

// dataset changes one dataset, in one revision.
func (x Exchange) dataset(ctx context.Context, who auth.Principal, at catalog.Path, about *said, trial bool, done *Imported) error {
	at.Dataset = about.item.Name
	absent := Issue{"dataset " + about.item.Name, fmt.Sprintf("The namespace has no dataset %s that you may edit.", about.item.Name)}

	now, err := x.Query.Semantics(ctx, who, at)
	if fault.Is(err, fault.NotFound) { // deleted meanwhile
		done.Issues = append(done.Issues, absent)

		return nil
	}

	if err != nil {
		return err
	}

	m := merge(about, now)

	isValid, err := x.try(ctx, who, at, m)
	if isRefusal(err) {
		done.Issues = append(done.Issues, absent)

		return nil
	}

	done.Issues = append(done.Issues, m.issues...)

	changes := m.changes()
	if err != nil || !isValid || len(changes) == 0 {
		return err
	}

	if !trial {
		_, err = x.Query.PutSemantics(ctx, who, at, m.want, []int64{now.Revision})
	}

	switch {
	case isRefusal(err):
		done.Issues = append(done.Issues, Issue{"dataset " + about.item.Name, reason(err)})

		return nil
	case err != nil:
		return err
	}

	done.Datasets = append(done.Datasets, DatasetChanges{about.item.Name, changes})

	return nil
}

// try makes the checks of the service and drops what they refuse. A join that is refused can make measures refused, so it
// repeats.
func (x Exchange) try(ctx context.Context, who auth.Principal, at catalog.Path, m *merging) (bool, error) {
	const rounds = 4

	for range rounds {
		faults, err := x.Query.TrySemantics(ctx, who, at, m.want)
		if err != nil || len(faults) == 0 {
			return err == nil, err
		}

		if !m.drop(faults) {
			return false, nil
		}
	}

	m.note("all", "the checks refuse too much of it")

	return false, nil
}

// isRefusal reports whether an error is about one entry, so that the import goes on with the others.
func isRefusal(err error) bool {
	return err != nil && slices.ContainsFunc([]fault.Code{
		fault.NotFound, fault.Forbidden, fault.ValidationFailed, fault.PreconditionFailed, fault.Conflict, fault.LimitExceeded, fault.QueryInvalid,
	}, func(code fault.Code) bool { return fault.Is(err, code) })
}

// reason returns what a fault says, as one text.
func reason(err error) string {
	f := fault.From(err)
	if len(f.Subs) == 0 {
		return f.Message
	}

	list := make([]string, len(f.Subs))
	for i, sub := range f.Subs {
		list[i] = sub.Code + " " + sub.Message
	}

	return sentence(strings.Join(list, "; "))
}

// keep adds and changes verified questions, with all checks of a single one.
func (x Exchange) keep(ctx context.Context, who auth.Principal, at catalog.Path, list []verified.Content, trial bool, done *Imported) error {
	if len(list) == 0 {
		return nil
	}

	kept, err := x.inUse(ctx, who, at)
	if err != nil {
		return err
	}

	before := make(map[string]verified.Question, len(kept))
	for _, one := range kept {
		before[one.Question] = one
	}

	began := time.Now()

	for i, proved := 0, 0; i < len(list); i++ {
		one := list[i]
		one.Imported = true
		now, isKept := before[one.Question]

		if isKept && same(now.Content, one) {
			continue
		}

		if done.More = proved == maxProved || proved > 0 && time.Since(began) > provingTime; done.More {
			return nil
		}

		proved++

		if problem := contentProblem(one); problem != "" {
			err = fault.Invalid("question", problem)
		} else {
			err = x.verify(ctx, who, at, now, isKept, one, trial)
		}

		switch {
		case isRefusal(err):
			done.Issues = append(done.Issues, Issue{"verified question " + cut(one.Question), reason(err)})
		case err != nil:
			return err
		default:
			before[one.Question] = verified.Question{Content: one, ID: now.ID}
			done.Verified = append(done.Verified, QuestionChange{one.Question, !isKept})
		}
	}

	return nil
}

func (x Exchange) verify(ctx context.Context, who auth.Principal, at catalog.Path, now verified.Question, isKept bool, one verified.Content, trial bool) (err error) {
	if isKept && now.ID != uuid.Nil {
		_, err = x.Verified.Update(ctx, who, at, now.ID, verified.Change{
			Wordings: &one.Wordings, Query: &one.Query, Parameters: &one.Parameters, Interpretation: &one.Interpretation, Imported: true, Trial: trial,
		}, nil)

		return err
	}

	_, err = x.Verified.Create(ctx, who, verified.New{
		At: at, Trial: trial, Content: func(context.Context) (verified.Content, error) { return one, nil },
	})

	return err
}

// same reports whether two contents say the same, wherever they came from.
func same(a, b verified.Content) bool {
	return a.Question == b.Question && slices.Equal(a.Wordings, b.Wordings) && a.Query == b.Query && slices.Equal(a.Parameters, b.Parameters) && a.Interpretation == b.Interpretation
}

// The limits that the contract has for a verified question.
const (
	maxStatement      = 100_000
	maxInterpretation = 1000
	maxType           = 40
	maxColumn         = 600
	maxDefault        = 200
)

// contentProblem returns why the API would refuse a verified question, or "".
func contentProblem(c verified.Content) string {
	switch {
	case c.Question == "" || c.Query == "":
		return "and query are required"
	case len(c.Wordings) > verified.MaxWordings || len(c.Parameters) > verified.MaxParameters:
		return fmt.Sprintf("has more than %d wordings or more than %d parameters", verified.MaxWordings, verified.MaxParameters)
	case utf8.RuneCountInString(c.Query) > maxStatement || utf8.RuneCountInString(c.Interpretation) > maxInterpretation:
		return "has a statement or an interpretation that is too long"
	}

	for _, text := range append([]string{c.Question}, c.Wordings...) {
		if utf8.RuneCountInString(text) > verified.MaxWording || text == "" || strings.ContainsFunc(text, unicode.IsControl) {
			return fmt.Sprintf("has a wording that is empty, has more than %d characters, or a control character", verified.MaxWording)
		}
	}

	for _, p := range c.Parameters {
		if len(p.Type) > maxType || len(p.Column) > maxColumn || len(p.Default) > maxDefault || p.Type == "" || p.Default == "" || !slices.Contains([]verified.Period{"", verified.Year, verified.Month, verified.Day}, p.Period) {
			return "has a parameter that is not valid"
		}
	}

	return ""
}
