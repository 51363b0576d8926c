package catalog

import (
	"bytes"
	"cmp"
	"context"
	"encoding/hex"
	"maps"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/google/uuid"

	"quern.dev/quern/internal/auth"
	"quern.dev/quern/internal/postgres"
)

// Search looks only along what the caller may see, so that neither its answer nor its time tells of anything else:
// the caller's account, namespaces that are shared as a whole, and single datasets. It is bounded: so many words, so
// many shares, so many candidates, so many hits.
const (
	// MaxHits is how many hits a search has at most, over all its pages.
	MaxHits = 200

	maxWords      = 8
	maxShares     = 10_000
	maxCandidates = 500 // of each word; twice as many are ranked
	scopesAtOnce  = 32  // namespaces that one look into the index finds words within

	// The index gives all that have a word before it gives the first, which takes long for a word that tens of thousands
	// have. In an account that is so large, a word that so many of its newest have is looked for among those alone.
	largeAccount = 5000
	sampled      = 200
	oftenSampled = sampled / 5
	recentLooked = 5000
)

// Search is what is looked for.
type Search struct {
	Words string
	In    Path // a namespace; the zero Path is everything that the caller may see
	After Rank
	Limit int
}

// Rank is the place of a hit among the others. The zero Rank is before all of them.
type Rank struct {
	Score            uint32
	Account, Dataset uuid.UUID
}

func (r Rank) compare(other Rank) int {
	return cmp.Or(
		cmp.Compare(other.Score, r.Score),
		bytes.Compare(r.Account[:], other.Account[:]),
		bytes.Compare(r.Dataset[:], other.Dataset[:]))
}

// Search finds datasets by name, columns, descriptions and values, the best first. Each that it gives has passed the
// same decision as a read of it.
//
// Faults: NotFound if the caller may see nothing of the namespace.
func (c Catalog) Search(ctx context.Context, who auth.Principal, want Search) (page []Item, next *Rank, err error) {
	err = c.DB.Do(ctx, func(q postgres.Querier) error {
		within, err := c.scope(ctx, q, who, want.In)
		if err != nil {
			return err
		}

		ranks, err := search(ctx, q, newWanted(want.Words), within)
		if err != nil {
			return err
		}

		if want.After != (Rank{}) {
			ranks = slices.DeleteFunc(ranks, func(r Rank) bool { return r.compare(want.After) <= 0 })
		}

		found, err := firstVisible(ctx, q, who, ranks, want.Limit+1)
		if err != nil {
			return err
		}

		if len(found) > want.Limit {
			found = found[:want.Limit]
			last := found[want.Limit-1]
			place := slices.IndexFunc(ranks, func(r Rank) bool { return r.Account == last.Account && r.Dataset == last.ID })
			next = &ranks[place]
		}

		page, err = c.named(ctx, q, found)

		return err
	})

	return page, next, err
}

// firstVisible reads the first of the hits that the caller may see.
func firstVisible(ctx context.Context, q postgres.Querier, who auth.Principal, ranks []Rank, limit int) (list []Dataset, err error) {
	for len(ranks) > 0 && len(list) < limit {
		batch := ranks[:min(limit-len(list), len(ranks))]
		ranks = ranks[len(batch):]

		found, err := selectRanked(ctx, q, who, batch)
		if err != nil {
			return nil, err
		}

		for _, d := range found {
			if d.access.role(who) != "" {
				list = append(list, d)
			}
		}
	}

	return list, nil
}

// scope is where a search looks.
type scope struct {
	account uuid.UUID                                                      // that much of it lies in
	inside  string                                                         // the condition for what of the account is in it
	wholes  []string                                                       // accounts and namespaces, as conditions of the text search
	singles func(q postgres.Querier, conditions []string) ([]found, error) // those of single datasets that fulfil most
}

func (c Catalog) scope(ctx context.Context, q postgres.Querier, who auth.Principal, in Path) (scope, error) {
	switch {
	case in != (Path{}):
		return c.namespaceScope(ctx, q, who, in)
	case isRestricted(who):
		entries, err := c.sharedEntries(q, who)(ctx, entry{}, maxShares)

		return entriesScope(ctx, entries), err
	default:
		namespaces, err := selectSharedNamespaces(ctx, q, who)

		return scope{
			account: who.Account, inside: lexeme(signAccount, who.Account),
			wholes: append(namespaceLexemes(namespaces), lexeme(signAccount, who.Account)),
			singles: func(q postgres.Querier, conditions []string) ([]found, error) {
				return findShared(ctx, q, conditions, who)
			},
		}, err
	}
}

// namespaceScope is what the caller may see of a namespace.
func (c Catalog) namespaceScope(ctx context.Context, q postgres.Querier, who auth.Principal, in Path) (scope, error) {
	namespace, err := c.Visible(ctx, q, who, in)
	if err != nil {
		return scope{}, err
	}

	if namespace.access.role(who) != "" {
		whole := entriesScope(ctx, []entry{{namespace.Account, namespace.ID, uuid.Nil}})
		whole.account, whole.inside = namespace.Account, lexeme(signNamespace, namespace.ID)

		return whole, nil
	}

	entries, err := within(c.sharedEntries(q, who), namespace)(ctx, entry{namespace.Account, namespace.ID, uuid.Nil}, maxShares)

	return entriesScope(ctx, entries), err
}

func entriesScope(ctx context.Context, entries []entry) scope {
	var (
		namespaces []uuid.UUID
		datasets   []entry
	)

	for _, e := range entries {
		if e.dataset == uuid.Nil {
			namespaces = append(namespaces, e.namespace)
		} else {
			datasets = append(datasets, e)
		}
	}

	return scope{
		wholes: namespaceLexemes(namespaces),
		singles: func(q postgres.Querier, conditions []string) ([]found, error) {
			return findAmong(ctx, q, conditions, datasets)
		},
	}
}

// namespaceLexemes are conditions, each for as many namespaces as one look into the index takes.
func namespaceLexemes(namespaces []uuid.UUID) (conditions []string) {
	for chunk := range slices.Chunk(namespaces, scopesAtOnce) {
		lexemes := make([]string, len(chunk))
		for i, id := range chunk {
			lexemes[i] = lexeme(signNamespace, id)
		}

		conditions = append(conditions, anyOf(lexemes))
	}

	return conditions
}

func lexeme(sign string, id uuid.UUID) string { return quoted(sign+hex.EncodeToString(id[:]), "") }

// search gives the hits, the best first.
func search(ctx context.Context, q postgres.Querier, want wanted, in scope) ([]Rank, error) {
	if len(want.words) == 0 {
		return nil, nil
	}

	candidates, err := want.candidates(ctx, q, in)
	if err != nil {
		return nil, err
	}

	// Those with the most words first, each once.
	list := slices.SortedFunc(maps.Keys(candidates), func(a, b entry) int {
		return cmp.Or(candidates[b]-candidates[a], a.compare(b))
	})

	ranks, err := rankAll(ctx, q, want, list[:min(2*maxCandidates, len(list))])
	slices.SortFunc(ranks, Rank.compare)

	return ranks[:min(MaxHits, len(ranks))], err
}

// candidates are what may be a hit, and how promising it is. Words that few have give all that have them, and each of
// them counts for more than all the words that too many have. Of those, datasets are sought that have all of them, from
// the strictest sense on.
func (w wanted) candidates(ctx context.Context, q postgres.Querier, in scope) (map[entry]int, error) {
	var (
		candidates = map[entry]int{}
		conditions = append(slices.Clone(w.any), w.whole)
		counts     = make([]int, len(conditions))
	)

	singles, err := in.singles(q, conditions)
	if err != nil {
		return nil, err
	}

	for _, f := range singles {
		candidates[f.at] = int(f.n) * len(w.words)
	}

	frequent, err := in.frequent(ctx, q, w.any)
	if err != nil {
		return nil, err
	}

	for _, i := range frequent {
		counts[i], conditions[i] = maxCandidates, ""
	}

	within, err := findWithin(ctx, q, conditions, in.wholes)
	if err != nil {
		return nil, err
	}

	for _, f := range within {
		counts[f.n-1]++
	}

	for _, f := range within {
		if counts[f.n-1] < maxCandidates {
			candidates[f.at] += len(w.words)
		}
	}

	senses := w.senses(func(i int) bool { return counts[i] >= maxCandidates })

	if frequent, err = in.frequent(ctx, q, matches(senses)); err != nil {
		return nil, err
	}

	for i, sense := range senses {
		found, err := in.find(ctx, q, sense.match, slices.Contains(frequent, i))
		if err != nil {
			return nil, err
		}

		for _, f := range found {
			candidates[f.at] = max(candidates[f.at], sense.words)
		}

		if len(candidates) >= maxCandidates {
			break
		}
	}

	return candidates, nil
}

// frequent are the numbers of the conditions that many datasets of the account fulfil, as far as its newest show it.
func (s scope) frequent(ctx context.Context, q postgres.Querier, conditions []string) ([]int, error) {
	if s.account == uuid.Nil || len(conditions) == 0 {
		return nil, nil
	}

	inside := make([]string, len(conditions))
	for i, condition := range conditions {
		inside[i] = allOf([]string{s.inside, condition})
	}

	return selectFrequent(ctx, q, s.account, inside)
}

// find gives the first that fulfil a condition: among the newest of the account, if enough of those do.
func (s scope) find(ctx context.Context, q postgres.Querier, condition string, isFrequent bool) ([]found, error) {
	if isFrequent {
		if found, err := findRecent(ctx, q, s.account, allOf([]string{s.inside, condition})); err != nil || len(found) == maxCandidates {
			return found, err
		}
	}

	return findWithin(ctx, q, []string{condition}, s.wholes)
}

// wanted is what a search looks for, as PostgreSQL's text search reads it.
type wanted struct {
	words []string
	whole string

	// For each word, a condition for each place where it may stand: the best place first. What only resembles it is
	// looked for in the name and the columns.
	places [places][]string
	any    []string // for each word, anywhere
	names  []string // for each word, in the name
	sure   []string // for each word, not only something that resembles it
}

const places = 6

func newWanted(text string) wanted {
	w := wanted{whole: alternatives(marked(signWhole, forms(whole(text))), ""), words: significant(foldWanted(text))}

	for _, word := range w.words {
		same, near := forms(word), marked(signSlip, slips(word))
		begins := []string{signBeginning + word}

		conditions := [places]string{
			alternatives(same, string(inName)),
			alternatives(same, string(inColumn)),
			alternatives(same, string(inDescription)),
			alternatives(same, string(inValue)),
			alternatives(append(begins, near...), string(inName)),
			alternatives(append(begins, near...), string(inColumn)),
		}
		for i, condition := range conditions {
			w.places[i] = append(w.places[i], condition)
		}

		w.sure = append(w.sure, alternatives(same, ""))
		w.names = append(w.names, alternatives(marked(signName, same), ""))
		w.any = append(w.any, alternatives(slices.Concat(same, begins, near), ""))
	}

	return w
}

// significant are the words that count: each once, and of many the longest, which say the most.
func significant(words []string) []string {
	slices.Sort(words)
	words = slices.Compact(words)
	slices.SortStableFunc(words, func(a, b string) int { return utf8.RuneCountInString(b) - utf8.RuneCountInString(a) })

	return words[:min(maxWords, len(words))]
}

// sense is a condition, and how many words it is about.
type sense struct {
	match string
	words int
}

// senses are conditions about the words that too many datasets have, from the strictest on. None, if there are none.
func (w wanted) senses(isFrequent func(i int) bool) []sense {
	var names, sure, anywhere []string

	for i := range w.words {
		if isFrequent(i) {
			names, sure, anywhere = append(names, w.names[i]), append(sure, w.sure[i]), append(anywhere, w.any[i])
		}
	}

	if len(names) == 0 {
		return nil
	}

	return []sense{{w.whole, maxWords + 1}, {allOf(names), len(names)}, {allOf(sure), len(names)}, {allOf(anywhere), len(names)}, {anyOf(anywhere), 1}}
}

func matches(senses []sense) (conditions []string) {
	for _, s := range senses {
		conditions = append(conditions, s.match)
	}

	return conditions
}

func allOf(conditions []string) string { return "(" + strings.Join(conditions, " & ") + ")" }
func anyOf(conditions []string) string { return "(" + strings.Join(conditions, " | ") + ")" }

func alternatives(lexemes []string, at string) string {
	list := make([]string, len(lexemes))
	for i, lexeme := range lexemes {
		list[i] = quoted(lexeme, at)
	}

	return anyOf(list)
}

// quoted is a lexeme in a condition, anywhere or of a weight.
func quoted(lexeme, at string) string {
	if at == "" {
		return "'" + lexeme + "'"
	}

	return "'" + lexeme + "':" + at
}

// score puts hits in their order: the name as a whole, then by how many of the words are found, how many of them
// exactly, and where they stand. at has for each word the first of its places that holds, or how many there are.
func score(isWhole bool, at []int16) (score uint32) {
	var found, sure, sum uint32

	for _, place := range at {
		points := uint32(places - place) //nolint:gosec // 0 to places
		sum += points

		if points > 0 {
			found++
		}

		if points > 2 { // the last two places are of what resembles it
			sure++
		}
	}

	if isWhole {
		score = 1 << 24
	}

	return score | found<<16 | sure<<8 | sum
}
