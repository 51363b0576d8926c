package catalog

import (
	"bytes"
	"cmp"
	"context"
	"maps"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/google/uuid"

	"quern.dev/quern/internal/auth"
	"quern.dev/quern/internal/lexicon"
	"quern.dev/quern/internal/postgres"
)

// Search reads only what the caller may see, so that neither its result nor its duration reveals anything else: the
// caller's account, namespaces that are shared as a whole, and single shared datasets. The numbers of words, shares,
// candidates and hits are limited.
const (
	// MaxHits is the largest number of hits of a search, over all its pages.
	MaxHits = 200

	maxWords      = 8
	maxShares     = 10_000
	maxCandidates = 500 // of each word; twice as many are ranked
	scopesAtOnce  = 32  // namespaces that one index lookup searches

	// The index finds all datasets that have a word before it returns the first one, which is slow for a word that
	// tens of thousands of datasets have. In an account with more than largeAccount datasets, a word is frequent if at
	// least oftenSampled of the newest sampled datasets have it. Frequent words are searched among the newest
	// recentLooked datasets first, and with the index only if these yield fewer than maxCandidates.
	largeAccount = 5000
	sampled      = 200
	oftenSampled = sampled / 5
	recentLooked = 5000
)

// Search is a request to search datasets.
type Search struct {
	Words string
	In    Path // a namespace; the zero Path means everything that the caller may see
	After Rank
	Limit int
}

// Rank is the position of a hit among the hits. The zero Rank is before all hits.
type Rank struct {
	Score            uint32
	Account, Dataset uuid.UUID

	in [searchedParts]bool // whether words were found in the name, the columns, the descriptions, the values and the namespace; no part of the order
}

// searchedParts is the number of parts of a dataset that are searched.
const searchedParts = 5

// matchedIn names the parts of the dataset in which words were found.
func (r Rank) matchedIn() (list []string) {
	for i, name := range [searchedParts]string{"name", "column", "description", "value", "namespace"} {
		if r.in[i] {
			list = append(list, name)
		}
	}

	return list
}

func (r Rank) compare(other Rank) int {
	return cmp.Or(
		cmp.Compare(other.Score, r.Score),
		bytes.Compare(r.Account[:], other.Account[:]),
		bytes.Compare(r.Dataset[:], other.Dataset[:]))
}

// Search finds datasets by name, columns, descriptions, values and namespace, the best first. Each dataset that it returns has
// passed the same decision as a read of that dataset.
//
// Faults: NotFound if the caller may see nothing in the namespace.
func (c Catalog) Search(ctx context.Context, who auth.Principal, want Search) (page []Item, next *Rank, err error) {
	err = c.DB.Do(ctx, func(q postgres.Querier) error {
		within, err := c.scope(ctx, q, who, want.In)
		if err != nil {
			return err
		}

		words, err := c.withNamespaces(ctx, q, who, newWanted(want.Words), want.In)
		if err != nil {
			return err
		}

		ranks, err := search(ctx, q, words, within)
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

		page, err = c.measured(ctx, q, found)

		for i := range page {
			place := slices.IndexFunc(ranks, func(r Rank) bool { return r.Account == page[i].Account && r.Dataset == page[i].ID })
			page[i].MatchedIn = ranks[place].matchedIn()
		}

		return err
	})

	return page, next, err
}

// firstVisible reads the first hits that the caller may see.
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

// scope is the set of datasets that a search covers: a part of the index, and single datasets.
type scope struct {
	account    uuid.UUID                                                                      // account that contains a large part of the scope, or uuid.Nil
	inside     string                                                                         // condition that selects the part of the account that is in the scope
	conditions []string                                                                       // accounts and namespaces, as text search conditions
	singles    func(ctx context.Context, q postgres.Querier, w wanted) (map[entry]int, error) // candidates among the single datasets
}

// part is a set of datasets that a few conditions select in the index.
type part interface {
	wholes() []string
	// frequent returns the indexes of the conditions that many of its datasets meet.
	frequent(ctx context.Context, q postgres.Querier, conditions []string) ([]int, error)
	// find returns the first of its datasets that meet a condition.
	find(ctx context.Context, q postgres.Querier, condition string, isFrequent bool) ([]found, error)
}

func (s scope) wholes() []string { return s.conditions }

func (c Catalog) scope(ctx context.Context, q postgres.Querier, who auth.Principal, in Path) (scope, error) {
	switch {
	case in != (Path{}):
		return c.namespaceScope(ctx, q, who, in)
	case isRestricted(who):
		entries, err := c.sharedEntries(q, who)(ctx, entry{}, maxShares)

		return entriesScope(entries), err
	default:
		namespaces, err := selectSharedNamespaces(ctx, q, who)

		return scope{
			account: who.Account, inside: lexeme(signAccount, who.Account),
			conditions: append(namespaceLexemes(namespaces), lexeme(signAccount, who.Account)),
			singles:    sharedAnywhere(who).candidates,
		}, err
	}
}

// namespaceScope returns the part of a namespace that the caller may see.
func (c Catalog) namespaceScope(ctx context.Context, q postgres.Querier, who auth.Principal, in Path) (scope, error) {
	namespace, err := c.Lookup(ctx, q, who, in)
	if err != nil {
		return scope{}, err
	}

	if namespace.access.role(who) != "" {
		whole := entriesScope([]entry{{namespace.Account, namespace.ID, uuid.Nil}})
		whole.account, whole.inside = namespace.Account, lexeme(signNamespace, namespace.ID)

		return whole, nil
	}

	if !isRestricted(who) {
		return scope{singles: sharedIn(who, namespace).candidates}, nil
	}

	entries, err := within(c.sharedEntries(q, who), namespace)(ctx, entry{namespace.Account, namespace.ID, uuid.Nil}, maxShares)

	return entriesScope(entries), err
}

// search returns the hits, the best first.
func search(ctx context.Context, q postgres.Querier, want wanted, in scope) ([]Rank, error) {
	if len(want.words) == 0 {
		return nil, nil
	}

	candidates, err := want.candidates(ctx, q, in)
	if err != nil {
		return nil, err
	}

	// Candidates that meet the most conditions come first.
	list := slices.SortedFunc(maps.Keys(candidates), func(a, b entry) int {
		return cmp.Or(candidates[b]-candidates[a], a.compare(b))
	})

	ranks, err := rankAll(ctx, q, want, list[:min(2*maxCandidates, len(list))])
	slices.SortFunc(ranks, Rank.compare)

	return ranks[:min(MaxHits, len(ranks))], err
}

// candidates returns the possible hits, each with a number that says how promising it is.
func (w wanted) candidates(ctx context.Context, q postgres.Querier, in scope) (map[entry]int, error) {
	candidates, err := in.singles(ctx, q, w)
	if err != nil || len(in.conditions) == 0 {
		return candidates, err
	}

	frequent, err := in.frequent(ctx, q, w.any)
	if err != nil {
		return nil, err
	}

	return candidates, w.gather(ctx, q, in, frequent, candidates)
}

// conditions returns a condition for each word, and that for the whole name.
func (w wanted) conditions() []string { return append(slices.Clone(w.any), w.whole) }

// weigh returns single datasets as candidates.
func (w wanted) weigh(list []found) map[entry]int {
	candidates := map[entry]int{}
	for _, f := range list {
		candidates[f.at] = int(f.n) * len(w.words)
	}

	return candidates
}

// gather adds the candidates of a part of the index, in which some words are known to be frequent. A word that few datasets
// have adds all of them, and counts for more than all frequent words together. For the frequent words, gather
// searches datasets that have all these words, in the strictest sense first.
func (w wanted) gather(ctx context.Context, q postgres.Querier, in part, frequent []int, candidates map[entry]int) error {
	conditions := w.conditions()
	counts := make([]int, len(conditions))

	for _, i := range frequent {
		counts[i], conditions[i] = maxCandidates, ""
	}

	within, err := findWithin(ctx, q, conditions, in.wholes())
	if err != nil {
		return err
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
	if len(senses) == 0 {
		return nil
	}

	if frequent, err = in.frequent(ctx, q, matches(senses)); err != nil {
		return err
	}

	for i, sense := range senses {
		found, err := in.find(ctx, q, sense.match, slices.Contains(frequent, i))
		if err != nil {
			return err
		}

		for _, f := range found {
			candidates[f.at] = max(candidates[f.at], sense.words)
		}

		if len(candidates) >= maxCandidates {
			break
		}
	}

	return nil
}

// frequent returns the indexes of the conditions that many datasets of the account meet, estimated from its newest
// datasets.
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

// find returns the first datasets that meet a condition. If many datasets are likely to meet it, find first searches only
// the newest datasets of the account, and stops if these are enough.
func (s scope) find(ctx context.Context, q postgres.Querier, condition string, isFrequent bool) ([]found, error) {
	if isFrequent {
		if found, err := findRecent(ctx, q, s.account, allOf([]string{s.inside, condition})); err != nil || len(found) == maxCandidates {
			return found, err
		}
	}

	return findWithin(ctx, q, []string{condition}, s.conditions)
}

// wanted is a search as conditions of PostgreSQL's text search.
type wanted struct {
	words []string
	whole string

	// For each word, a condition for each part of a dataset that the word may occur in, the best first. Words that
	// only resemble it are searched in the name and the columns. The last part is the namespace.
	places [places][]string
	any    []string // for each word, a condition that it occurs anywhere
	names  []string // for each word, a condition that it occurs in the name
	sure   []string // for each word, a condition that the word itself occurs, not only a similar one
}

const (
	places      = 7
	inNamespace = places - 1
	similar     = 4 // conditions before this one are for the word itself in the dataset

	nowhere = "'@'" // no document has this lexeme
)

func newWanted(text string) wanted {
	w := wanted{whole: alternatives(marked(signWhole, lexicon.Forms(whole(text))), ""), words: significant(lexicon.SearchWords(text))}

	for _, word := range w.words {
		same, near := lexicon.Forms(word), marked(signSlip, slips(word))
		begins := []string{signBeginning + word}

		conditions := [places]string{
			alternatives(same, string(inName)),
			alternatives(same, string(inColumn)),
			alternatives(same, string(inDescription)),
			alternatives(same, string(inValue)),
			alternatives(append(begins, near...), string(inName)),
			alternatives(append(begins, near...), string(inColumn)),
			nowhere,
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

// significant returns each word once and, if there are too many, the longest ones, which say the most.
func significant(words []string) []string {
	slices.Sort(words)
	words = slices.Compact(words)
	slices.SortStableFunc(words, func(a, b string) int { return utf8.RuneCountInString(b) - utf8.RuneCountInString(a) })

	return words[:min(maxWords, len(words))]
}

// sense is a condition and the number of words that it is about.
type sense struct {
	match string
	words int
}

// senses returns the conditions for those words of the search that many datasets contain, the strictest first. It
// returns nil if there is no such word.
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

// quoted returns a lexeme of a condition, with a weight if at is not "".
func quoted(lexeme, at string) string {
	if at == "" {
		return "'" + lexeme + "'"
	}

	return "'" + lexeme + "':" + at
}

// partsOf returns in which parts of a dataset words were found. The arguments are those of score.
func partsOf(isWhole bool, at []int16) (in [searchedParts]bool) {
	in[0] = isWhole

	for _, place := range at {
		if place < places {
			in[[places]int{0, 1, 2, 3, 0, 1, 4}[place]] = true // similar words are in the name and the columns
		}
	}

	return in
}

// score orders hits: first a match of the whole name, then the number of words found, how many of these were found
// exactly, and where they occur. at contains for each word the index of its first condition in wanted.places that
// holds, or the number of conditions if none holds.
func score(isWhole bool, at []int16) (score uint32) {
	var found, sure, sum uint32

	for _, place := range at {
		points := uint32(places - place) //nolint:gosec // 0 to places
		sum += points

		if points > 0 {
			found++
		}

		if place < similar {
			sure++
		}
	}

	if isWhole {
		score = 1 << 24
	}

	return score | found<<16 | sure<<8 | sum
}
