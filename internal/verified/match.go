package verified

import (
	"context"
	"fmt"
	"regexp"
	"slices"
	"strings"
	"time"

	"github.com/google/uuid"

	"quern.dev/quern/internal/auth"
	"quern.dev/quern/internal/catalog"
	"quern.dev/quern/internal/postgres"
	"quern.dev/quern/internal/query"
)

// Match is the verified question that answers a question.
type Match struct {
	Question Question
	Given    []Given
	Words    map[string]string // words of the question that are the value of a parameter, by its name
}

// candidate is a verified question with a wording that may fit.
type candidate struct {
	Question

	shape   string
	key     int64
	wording int16
}

// Match returns the verified question that answers a question of the caller; nil if there is none, or if several fit.
//
// Faults: NotFound for a namespace that the caller may not see.
func (v *Verified) Match(ctx context.Context, who auth.Principal, at catalog.Path, text string) (*Match, error) {
	q := ask(text)

	var (
		keys  map[string]map[int64][][]span
		found []candidate
		stale []Question
	)

	err := v.DB.Do(ctx, func(db postgres.Querier) error {
		namespace, err := v.Catalog.Visible(ctx, db, who, at)
		if err != nil {
			return err
		}

		shapes, err := selectShapes(ctx, db, namespace.Account, namespace.ID)
		if err != nil || len(shapes) == 0 {
			return err
		}

		keys = q.lookups(shapes)

		if found, err = find(ctx, db, namespace, keys); err != nil || len(found) == 0 {
			return err
		}

		found, stale, err = v.usable(ctx, db, who, namespace, found)

		return err
	})
	if err == nil {
		err = v.suspendAll(ctx, who, stale)
	}

	if err != nil || len(found) == 0 {
		return nil, err
	}

	ways, err := q.among(found, keys, func(of Question, p Parameter, words string) (string, bool, error) {
		return v.lookUp(ctx, who, of, p, words)
	})
	if err != nil || len(ways) != 1 {
		return nil, err
	}

	return &ways[0], nil
}

// find returns the candidates for the keys.
func find(ctx context.Context, db postgres.Querier, namespace catalog.Namespace, keys map[string]map[int64][][]span) ([]candidate, error) {
	var (
		shapes []string
		list   []int64
	)

	for shape, of := range keys {
		for key := range of {
			shapes, list = append(shapes, shape), append(list, key)
		}
	}

	return selectCandidates(ctx, db, namespace.Account, namespace.ID, shapes, list)
}

// lookups returns the keys to look up, by shape.
func (q asked) lookups(shapes []string) map[string]map[int64][][]span {
	keys := map[string]map[int64][][]span{exactShape: {hashOf(q.exact()): nil}}

	for _, shape := range shapes {
		if shape != exactShape && shape != nearShape {
			keys[shape] = q.keys(shape)
		}
	}

	return keys
}

// among returns the ways in which candidates answer the question. An exact wording comes before all others.
func (q asked) among(found []candidate, keys map[string]map[int64][][]span, lookUp func(Question, Parameter, string) (string, bool, error)) (ways []Match, err error) {
	for _, c := range found {
		if c.shape == exactShape && c.prepared()[c.wording].exact() == q.exact() {
			return []Match{{Question: c.Question, Given: c.Defaults(), Words: map[string]string{}}}, nil
		}
	}

	seen := map[string]bool{}

	for _, c := range found {
		if c.shape == exactShape || c.shape == nearShape {
			continue
		}

		w := c.prepared()[c.wording]

		for _, spans := range keys[c.shape][c.key] {
			for _, way := range w.fits(q, spans) {
				one, ok, err := q.fill(c.Question, way, lookUp)
				if err != nil {
					return nil, err
				}

				if sign := fmt.Sprint(c.ID, one.Given); ok && !seen[sign] {
					seen[sign] = true
					ways = append(ways, one)
				}
			}
		}
	}

	return ways, nil
}

// fill returns the match with the values of the spans, and the defaults of parameters that the wording does not have.
func (q asked) fill(of Question, way map[int]span, lookUp func(Question, Parameter, string) (string, bool, error)) (m Match, ok bool, err error) {
	m = Match{Question: of, Given: of.Defaults(), Words: map[string]string{}}

	for slot, s := range way {
		p := of.Parameters[slot]
		words := q.written(s)
		value, ok := p.parse(words)

		if ok && p.kind() == 'v' {
			if value, ok, err = lookUp(of, p, words); err != nil {
				return m, false, err
			}
		}

		if !ok {
			return m, false, nil
		}

		m.Given[slot].Value, m.Words[p.Name] = value, words
	}

	return m, true, nil
}

// lookUp returns the value of the parameter's column that words name, except for case, accents and punctuation.
func (v *Verified) lookUp(ctx context.Context, who auth.Principal, of Question, p Parameter, words string) (value string, ok bool, err error) {
	need, column := of.needOf(p)
	if need == nil {
		return "", false, nil
	}

	var seen []catalog.Item

	err = v.DB.Do(ctx, func(db postgres.Querier) (err error) {
		seen, err = v.Catalog.Seen(ctx, db, who, need.Account, []uuid.UUID{need.ID})

		return err
	})
	if err != nil || len(seen) == 0 {
		return "", false, err
	}

	matched, err := v.Query.Match(ctx, who, query.MatchRequest{Seen: []catalog.Dataset{seen[0].Dataset}, Question: words})
	if err != nil {
		return "", false, err
	}

	var found []string

	for _, m := range matched.Matches {
		if m.Column != column || ask(m.Value).exact() != ask(words).exact() {
			continue
		}

		if m.Value == words {
			return words, true, nil
		}

		if !slices.Contains(found, m.Value) {
			found = append(found, m.Value)
		}
	}

	if len(found) != 1 { // two values that differ only in case
		return "", false, nil
	}

	return found[0], true, nil
}

// state is what a caller sees of a verified question now.
type state struct {
	visible bool
	reason  string // why it must be suspended
}

// inspect returns the state of each question for a caller: whether the caller may read all its datasets, and whether they are as the
// statement needs them.
func (v *Verified) inspect(ctx context.Context, db postgres.Querier, who auth.Principal, namespace catalog.Namespace, list []Question) ([]state, error) {
	ids := map[uuid.UUID][]uuid.UUID{} // by account

	for _, q := range list {
		for _, n := range q.Needs {
			if !slices.Contains(ids[n.Account], n.ID) {
				ids[n.Account] = append(ids[n.Account], n.ID)
			}
		}
	}

	seen := map[uuid.UUID]catalog.Item{}

	for account, wanted := range ids {
		items, err := v.Catalog.Seen(ctx, db, who, account, wanted)
		if err != nil {
			return nil, err
		}

		for _, item := range items {
			seen[item.ID] = item
		}
	}

	states := make([]state, len(list))
	for i, q := range list {
		states[i] = q.stateFor(who, namespace, seen)
	}

	return states, nil
}

func (q Question) stateFor(who auth.Principal, namespace catalog.Namespace, seen map[uuid.UUID]catalog.Item) state {
	var now []query.Need

	for _, n := range q.Needs {
		item, isSeen := seen[n.ID]

		switch {
		case isSeen:
			now = append(now, needOf(n, item))
		case n.Namespace != namespace.ID || !MayEdit(who, namespace):
			return state{}
		}
		// Who may edit the namespace sees all its datasets, so this one was deleted.
	}

	return state{true, query.Compare(q.Needs, now)}
}

// needOf returns what is left of a need.
func needOf(before query.Need, item catalog.Item) query.Need {
	now := query.Need{Account: item.Account, ID: item.ID, Namespace: item.NamespaceID, Dataset: item.Owner + "/" + item.Namespace + "/" + item.Name}

	for _, c := range item.Columns {
		if slices.ContainsFunc(before.Columns, func(n query.NeedColumn) bool { return n.Name == c.Name }) {
			now.Columns = append(now.Columns, query.NeedColumn{Name: c.Name, Type: c.Type})
		}
	}

	return now
}

// usable returns the candidates whose datasets the caller may read and which are as the statements need them, and those that must be
// suspended.
func (v *Verified) usable(ctx context.Context, db postgres.Querier, who auth.Principal, namespace catalog.Namespace, found []candidate) (kept []candidate, stale []Question, err error) {
	list := make([]Question, len(found))
	for i, c := range found {
		list[i] = c.Question
	}

	states, err := v.inspect(ctx, db, who, namespace, list)
	if err != nil {
		return nil, nil, err
	}

	for i, c := range found {
		switch {
		case !states[i].visible:
		case states[i].reason != "":
			c.Reason = states[i].reason
			stale = append(stale, c.Question)
		default:
			kept = append(kept, c)
		}
	}

	return kept, stale, nil
}

func (v *Verified) suspendAll(ctx context.Context, who auth.Principal, stale []Question) error {
	for _, q := range stale {
		if err := v.Suspend(ctx, who, q, q.Reason); err != nil {
			return err
		}
	}

	return nil
}

const maxNear = 3 // verified questions that are suggested

// Near is a verified question that is near to a question. Its text may contain values, so who shows it must record the snapshots as read.
type Near struct {
	Text  string // the question with the defaults of its parameters
	Query string // the statement with the same values
	Reads []query.Read
}

// reads returns the current snapshots of the datasets that a verified question needs.
func (v *Verified) reads(ctx context.Context, db postgres.Querier, who auth.Principal, q Question) (list []query.Read, err error) {
	for _, n := range q.Needs {
		items, err := v.Catalog.Seen(ctx, db, who, n.Account, []uuid.UUID{n.ID})
		if err != nil {
			return nil, err
		}

		for _, item := range items {
			seconds, nanoseconds := item.SnapshotID.Time().UnixTime()
			list = append(list, query.Read{
				Account: item.Account, ID: item.ID, Dataset: n.Dataset, Snapshot: item.SnapshotID, CommittedAt: time.Unix(seconds, nanoseconds).UTC(),
			})
		}
	}

	return list, nil
}

// Near returns verified questions that differ from the question in a word or in the order of words. They are suggestions, not answers.
func (v *Verified) Near(ctx context.Context, who auth.Principal, at catalog.Path, text string) (near []Near, err error) {
	q := ask(text)
	if len(q.tokens) > maxTokens {
		return nil, nil
	}

	keys := map[int64][][]span{q.sum: nil}

	for _, t := range q.tokens {
		if !t.isFunction {
			keys[q.sum-t.hash()] = nil
		}
	}

	err = v.DB.Do(ctx, func(db postgres.Querier) error {
		namespace, err := v.Catalog.Visible(ctx, db, who, at)
		if err != nil {
			return err
		}

		found, err := find(ctx, db, namespace, map[string]map[int64][][]span{nearShape: keys})
		if err != nil || len(found) == 0 {
			return err
		}

		if found, _, err = v.usable(ctx, db, who, namespace, found); err != nil {
			return err
		}

		for _, c := range found {
			if text := c.Asked(); len(near) < maxNear && !slices.ContainsFunc(near, func(n Near) bool { return n.Text == text }) {
				reads, err := v.reads(ctx, db, who, c.Question)
				if err != nil {
					return err
				}

				near = append(near, Near{text, c.filled(), reads})
			}
		}

		return nil
	})

	return near, err
}

// placeholder matches a parameter in a statement. A text in quotes has none, and is matched so that it is left as it is.
var placeholder = regexp.MustCompile(`'(?:[^']|'')*'|\$[A-Za-z_][A-Za-z0-9_]*`)

// filled returns the statement with the defaults of its parameters, for people and models to read. It never runs.
func (q Question) filled() string {
	given := q.Defaults()

	return placeholder.ReplaceAllStringFunc(q.Query, func(text string) string {
		for _, g := range given {
			switch {
			case text != "$"+g.Name:
			case g.Type == varchar || g.Type == date:
				return "'" + strings.ReplaceAll(g.Value, "'", "''") + "'"
			default:
				return g.Value
			}
		}

		return text
	})
}

// Asked returns the question with the defaults of its parameters, as one can ask it.
func (q Question) Asked() string {
	given := slices.Clone(q.Parameters)
	list := make([]Given, len(given))

	for i, p := range given {
		list[i] = Given{Name: p.Name, Value: p.Default}
	}

	return Question{Content: Content{Question: q.Question}}.Interpreted(list)
}
