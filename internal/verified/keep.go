package verified

import (
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/google/uuid"

	"quern.dev/quern/internal/audit"
	"quern.dev/quern/internal/auth"
	"quern.dev/quern/internal/catalog"
	"quern.dev/quern/internal/event"
	"quern.dev/quern/internal/fault"
	"quern.dev/quern/internal/postgres"
	"quern.dev/quern/internal/query"
)

// New is a question to keep.
type New struct {
	At catalog.Path
	// Content returns what to keep. It is not called for a repeated request.
	Content func(ctx context.Context) (Content, error)
	Once    auth.Once
	Trial   bool // all checks are made, and nothing is kept
}

// errTrial ends the transaction of a trial.
var errTrial = errors.New("a trial")

// Create keeps a question with its statement, which runs first with the rights of the caller.
//
// Faults: NotFound; Forbidden if the caller may not edit the namespace; ValidationFailed; Conflict if another verified question
// has the same wording; LimitExceeded; those of the statement.
func (v *Verified) Create(ctx context.Context, who auth.Principal, want New) (made Question, err error) {
	namespace, err := v.Editable(ctx, who, want.At)
	if err != nil {
		return Question{}, err
	}

	if made, isRepeated, err := v.repeated(ctx, who, namespace, want.Once); err != nil || isRepeated {
		return made, err
	}

	draft := Question{Account: namespace.Account, Namespace: namespace.ID, ID: uuid.Must(uuid.NewV7())}
	if draft.Content, err = want.Content(ctx); err != nil {
		return Question{}, err
	}

	if draft.Needs, err = v.prove(ctx, who, want.At, draft.Content); err != nil {
		return Question{}, err
	}

	err = v.DB.InTx(ctx, func(tx postgres.Tx) error {
		now := v.now()

		first, repeated, err := want.Once.ClaimTx(ctx, tx, namespace.Account, who, draft.ID, now)
		if err != nil {
			return err
		}

		if !repeated {
			if err := v.createTx(ctx, tx, who, namespace, draft, now); err != nil {
				return err
			}
		}

		if want.Trial {
			return errTrial
		}

		return reload(ctx, tx, draft, first, &made)
	})

	if errors.Is(err, errTrial) {
		return draft, nil
	}

	return made, taken(err)
}

func (v *Verified) createTx(ctx context.Context, tx postgres.Tx, who auth.Principal, namespace catalog.Namespace, draft Question, now time.Time) error {
	if count, err := countQuestions(ctx, tx, draft.Account, draft.Namespace, maxKept); err != nil || count >= maxKept {
		return orFull(err)
	}

	if err := insertQuestion(ctx, tx, who, draft, now); err != nil {
		return err
	}

	if err := index(ctx, tx, draft); err != nil {
		return err
	}

	return v.noteTx(ctx, tx, who, namespace, "verified.create", draft.ID, "")
}

func orFull(err error) error {
	if err != nil {
		return err
	}

	return fault.New(fault.LimitExceeded, fmt.Sprintf("A namespace has at most %d verified questions. Retire some, or use another namespace.", maxKept))
}

// repeated returns what a repeated request created.
func (v *Verified) repeated(ctx context.Context, who auth.Principal, namespace catalog.Namespace, once auth.Once) (made Question, isRepeated bool, err error) {
	if !once.Given() {
		return made, false, nil
	}

	err = v.DB.Do(ctx, func(db postgres.Querier) error {
		id, err := once.Find(ctx, db, namespace.Account, who, v.now())
		if err != nil || id == uuid.Nil {
			return err
		}

		isRepeated = true

		return reload(ctx, db, Question{Account: namespace.Account, Namespace: namespace.ID}, id, &made)
	})

	return made, isRepeated, err
}

func reload(ctx context.Context, db postgres.Querier, of Question, id uuid.UUID, into *Question) error {
	found, err := selectQuestion(ctx, db, of.Account, of.Namespace, id)
	if err != nil || found == nil {
		return orAbsent(err)
	}

	*into = *found

	return nil
}

func orAbsent(err error) error {
	if err != nil {
		return err
	}

	return fault.Absent()
}

// index makes a question findable, unless a question with one of its wordings would be answered by another one.
func index(ctx context.Context, tx postgres.Tx, q Question) error {
	if err := insertWordings(ctx, tx, q); err != nil {
		return err
	}

	for _, w := range q.prepared() {
		if w.shape() != "" || len(w.tokens) > maxTokens {
			continue // the index of forms compares these
		}

		found, err := selectCandidates(ctx, tx, q.Account, q.Namespace, []string{""}, []int64{w.key()})
		if err != nil {
			return err
		}

		for _, c := range found {
			if other := c.prepared()[c.wording]; c.ID != q.ID && other.structure(w.tokens) == other.structure(other.tokens) {
				return sameWording()
			}
		}
	}

	return nil
}

func sameWording() error {
	return fault.New(fault.Conflict, "Another verified question of this namespace has the same wording. Change that one, or retire it first.")
}

// taken returns the fault for a wording that another verified question has.
func taken(err error) error {
	if constraint, ok := postgres.ViolatesUnique(err); ok && constraint == "verified_wordings_form" {
		return sameWording()
	}

	return err
}

// Change is a change of a verified question. What is nil does not change.
type Change struct {
	Question       *string
	Wordings       *[]string
	Query          *string
	Parameters     *Parameters
	Interpretation *string
	Imported       bool // the content came in a document
	Trial          bool // all checks are made, and nothing is kept
}

// Apply returns the content with the change.
func (c Change) Apply(to Content) Content {
	for _, one := range []struct{ from, into *string }{{c.Question, &to.Question}, {c.Query, &to.Query}, {c.Interpretation, &to.Interpretation}} {
		if one.from != nil {
			*one.into = *one.from
		}
	}

	if c.Wordings != nil {
		to.Wordings = *c.Wordings
	}

	if c.Parameters != nil {
		to.Parameters = *c.Parameters
	}

	to.Imported = c.Imported

	return to
}

// Update changes a question and verifies it again, also if it was suspended or retired: all checks of Create are made. If expected is
// not nil, its revision must be one of the expected revisions.
//
// Faults: as Create, and PreconditionFailed.
func (v *Verified) Update(ctx context.Context, who auth.Principal, at catalog.Path, id uuid.UUID, change Change, expected []int64) (saved Question, err error) {
	before, namespace, err := v.own(ctx, who, at, id)
	if err != nil {
		return Question{}, err
	}

	if expected == nil {
		expected = []int64{before.Revision} // the checks are about this revision
	}

	next := before
	next.Content = change.Apply(before.Content)

	if next.Needs, err = v.prove(ctx, who, at, next.Content); err != nil {
		return Question{}, err
	}

	err = v.DB.InTx(ctx, func(tx postgres.Tx) error {
		current, err := lockQuestion(ctx, tx, next.Account, next.Namespace, id)
		if err != nil || current == nil {
			return orAbsent(err)
		}

		if !slices.Contains(expected, current.Revision) || current.Revision != before.Revision {
			return fault.New(fault.PreconditionFailed, "The verified question has changed. Read it again, then repeat the change.")
		}

		if err := updateQuestion(ctx, tx, who, next, v.now()); err != nil {
			return err
		}

		if err := deleteWordings(ctx, tx, next); err != nil {
			return err
		}

		if err := index(ctx, tx, next); err != nil {
			return err
		}

		if err := v.noteTx(ctx, tx, who, namespace, "verified.update", id, fmt.Sprintf("revision %d", current.Revision+1)); err != nil {
			return err
		}

		if change.Trial {
			return errTrial
		}

		return reload(ctx, tx, next, id, &saved)
	})

	if errors.Is(err, errTrial) {
		return next, nil
	}

	return saved, taken(err)
}

// Retire ends the use of a verified question. It stays readable.
//
// Faults: NotFound, Forbidden.
func (v *Verified) Retire(ctx context.Context, who auth.Principal, at catalog.Path, id uuid.UUID) error {
	before, namespace, err := v.own(ctx, who, at, id)
	if err != nil {
		return err
	}

	return v.DB.InTx(ctx, func(tx postgres.Tx) error {
		current, err := lockQuestion(ctx, tx, before.Account, before.Namespace, id)
		if err != nil || current == nil {
			return orAbsent(err)
		}

		if current.Status == Retired {
			return nil
		}

		if err := retireQuestion(ctx, tx, *current); err != nil {
			return err
		}

		if err := deleteWordings(ctx, tx, *current); err != nil {
			return err
		}

		return v.noteTx(ctx, tx, who, namespace, "verified.retire", id, "")
	})
}

// Suspend stops the use of a verified question because something that it needs has changed. A question that was changed meanwhile stays
// as it is.
func (v *Verified) Suspend(ctx context.Context, who auth.Principal, q Question, reason string) error {
	return v.DB.InTx(ctx, func(tx postgres.Tx) error {
		done, err := suspendQuestion(ctx, tx, q, reason)
		if err != nil || !done {
			return err
		}

		entry := who.Audit(q.Account, v.now(), "verified.suspend", audit.Target{Kind: kindVerified, ID: q.ID.String()})
		entry.Detail = reason

		if err := audit.WriteTx(ctx, tx, entry); err != nil {
			return err
		}

		return event.WriteTx(ctx, tx, event.Event{
			Account: q.Account, Type: event.VerifiedSuspended, At: v.now(),
			Subject: event.Subject{Kind: event.KindNamespace, Account: q.Account, ID: q.Namespace, Namespace: q.Namespace}, Data: event.Data{VerifiedID: &q.ID},
		})
	})
}

// own returns a verified question that the caller may change.
func (v *Verified) own(ctx context.Context, who auth.Principal, at catalog.Path, id uuid.UUID) (Question, catalog.Namespace, error) {
	found, err := v.Get(ctx, who, at, id)
	if err != nil {
		return Question{}, catalog.Namespace{}, err
	}

	namespace, err := v.Editable(ctx, who, at)

	return found, namespace, err
}

// MayEdit reports whether the caller may edit a namespace as a whole.
func MayEdit(who auth.Principal, namespace catalog.Namespace) bool {
	role := namespace.Role(who)

	return role != "" && !auth.Editor.Exceeds(role)
}

// Editable returns a namespace that the caller may edit as a whole.
//
// Faults: NotFound, Forbidden.
func (v *Verified) Editable(ctx context.Context, who auth.Principal, at catalog.Path) (namespace catalog.Namespace, err error) {
	err = v.DB.Do(ctx, func(db postgres.Querier) (err error) {
		namespace, err = v.Catalog.Visible(ctx, db, who, at)

		return err
	})
	if err == nil && !MayEdit(who, namespace) {
		err = fault.New(fault.Forbidden, "This needs the role editor on the namespace as a whole.")
	}

	return namespace, err
}

// prove checks a question and runs its statement with the rights of the caller. It returns what the statement needs.
func (v *Verified) prove(ctx context.Context, who auth.Principal, at catalog.Path, c Content) ([]query.Need, error) {
	if err := c.check(); err != nil {
		return nil, err
	}

	result, err := v.Query.Run(ctx, who, c.statement(at))
	if err != nil {
		return nil, err
	}
	defer result.Close()

	for err == nil {
		_, err = result.Next()
	}

	if !errors.Is(err, io.EOF) {
		return nil, err
	}

	return result.Needs, c.checkColumns(result.Needs)
}

// statement returns the statement with the defaults of its parameters.
func (c Content) statement(at catalog.Path) query.Statement {
	return query.Statement{Username: at.Username, Namespace: at.Namespace, Text: c.Query, Parameters: Bound(c.Defaults()), Form: query.Rows, Lasting: true}
}

// Rows runs the statement of a question with the defaults of its parameters and the rights of the caller. It reads the pinned snapshots. The
// caller closes the result.
//
// Faults: those of the package query; *query.ChangedError if the statement no longer reads what it needs.
func (v *Verified) Rows(ctx context.Context, who auth.Principal, at catalog.Path, q Question, pinned map[uuid.UUID]uuid.UUID) (*query.Result, error) {
	want := q.statement(at)
	want.Needs, want.Pinned, want.OfRun = q.Needs, pinned, true

	return v.Query.Run(ctx, who, want)
}

// checkColumns checks that the statement reads the columns whose values parameters have.
func (c Content) checkColumns(needs []query.Need) error {
	for i, p := range c.Parameters {
		if p.Column == "" {
			continue
		}

		need, column := Question{Content: c, Needs: needs}.needOf(p)
		if need == nil {
			return fault.Invalid("parameters."+strconv.Itoa(i)+".column", "is not a column that the statement reads; write dataset.column")
		}

		if j := slices.IndexFunc(need.Columns, func(n query.NeedColumn) bool { return n.Name == column }); need.Columns[j].Type != varchar {
			return fault.Invalid("parameters."+strconv.Itoa(i)+".column", "is not a column of type varchar, which alone has values that questions are compared with")
		}
	}

	return nil
}

// needOf returns the dataset of a parameter's column, and the name of the column; nil if the statement does not read it.
func (q Question) needOf(p Parameter) (need *query.Need, column string) {
	for i, n := range q.Needs {
		name := n.Dataset[strings.LastIndexByte(n.Dataset, '/')+1:]

		for _, c := range n.Columns {
			if strings.EqualFold(p.Column, name+"."+c.Name) || strings.EqualFold(p.Column, n.Dataset+"."+c.Name) {
				return &q.Needs[i], c.Name
			}
		}
	}

	return nil, ""
}

const kindVerified = "verified"

func (v *Verified) noteTx(ctx context.Context, tx postgres.Tx, who auth.Principal, namespace catalog.Namespace, action string, id uuid.UUID, detail string) error {
	entry := who.Audit(namespace.Account, v.now(), action, audit.Target{Kind: kindVerified, ID: id.String(), Namespace: namespace.Name})
	entry.Detail = detail

	return audit.WriteTx(ctx, tx, entry)
}

func (v *Verified) now() time.Time { return v.Now().UTC().Truncate(time.Millisecond) }
