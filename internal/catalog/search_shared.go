package catalog

import (
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"slices"

	"github.com/google/uuid"

	"quern.dev/quern/internal/auth"
	"quern.dev/quern/internal/postgres"
)

// A document has a word for each of the first 100 subjects that the dataset itself is shared with, so that the index finds words within
// what is shared with the caller. The triggers of directory_grants write it. Every hit still passes the same decision as a read: these words
// decide what a search looks at, and never who sees it.

// shares is what is shared with the caller dataset by dataset, between two positions.
type shares struct {
	who       auth.Principal
	after, to entry
	inside    string // a condition that selects the documents between the positions, or ""
}

const (
	maxSampled   = 1000 // grants of all subjects
	sharesLooked = 2500 // grants that are looked at for frequent words before the index is
)

// sharedAnywhere returns what is shared with the caller in all namespaces.
func sharedAnywhere(who auth.Principal) shares {
	return shares{who: who, to: entry{uuid.Max, uuid.Max, uuid.Max}}
}

// sharedIn returns what is shared with the caller in one namespace.
func sharedIn(who auth.Principal, in Namespace) shares {
	return shares{
		who: who, after: entry{in.Account, in.ID, uuid.Nil}, to: entry{in.Account, in.ID, uuid.Max}, inside: lexeme(signNamespace, in.ID),
	}
}

// candidates returns the possible hits. If there are only a few shares, it looks at all of them. Otherwise it uses the index, and looks at
// those that are not in the index.
func (s shares) candidates(ctx context.Context, q postgres.Querier, w wanted) (map[entry]int, error) {
	sample, err := sampleShared(ctx, q, s, w.conditions())
	if err != nil {
		return nil, err
	}

	if isComplete(sample) {
		return w.weigh(metBy(sample)), nil
	}

	apart, err := findApart(ctx, q, s, w.conditions())
	if err != nil {
		return nil, err
	}

	candidates := w.weigh(apart)

	return candidates, w.gather(ctx, q, s, frequentIn(sample, len(w.any)), candidates)
}

// wholes returns the conditions that select the documents with a grant for the caller.
func (s shares) wholes() (conditions []string) {
	for chunk := range slices.Chunk(s.who.Subjects(), scopesAtOnce) {
		words := make([]string, len(chunk))
		for i, subject := range chunk {
			words[i] = quoted(granteeWord(subject), "")
		}

		condition := anyOf(words)

		if s.inside != "" {
			condition = allOf([]string{s.inside, condition})
		}

		conditions = append(conditions, condition)
	}

	return conditions
}

// granteeWord is what the trigger of directory_grants makes of a subject.
func granteeWord(subject auth.Subject) string {
	sum := sha256.Sum256([]byte(subject.Kind + ":" + subject.ID))

	return signGrantee + hex.EncodeToString(sum[:8])
}

// frequent returns the indexes of the conditions that many of the first datasets of a subject meet.
func (s shares) frequent(ctx context.Context, q postgres.Querier, conditions []string) ([]int, error) {
	sample, err := sampleShared(ctx, q, s, conditions)

	return frequentIn(sample, len(conditions)), err
}

// find returns the first datasets that meet a condition.
func (s shares) find(ctx context.Context, q postgres.Querier, condition string, isFrequent bool) ([]found, error) {
	if isFrequent {
		if found, err := findShared(ctx, q, s, condition); err != nil || len(found) == maxCandidates {
			return found, err
		}
	}

	return findWithin(ctx, q, []string{condition}, s.wholes())
}

// isComplete reports whether a sample has all shares.
func isComplete(sample []sampledShare) bool {
	counts := map[int64]int{}
	for _, share := range sample {
		counts[share.subject]++
	}

	for _, count := range counts {
		if count >= sampled {
			return false
		}
	}

	return len(sample) < maxSampled
}

// frequentIn returns the indexes of those of the first conditions that many of the sampled datasets of a subject meet.
func frequentIn(sample []sampledShare, conditions int) (frequent []int) {
	met := map[int64][]int{}

	for _, share := range sample {
		if met[share.subject] == nil {
			met[share.subject] = make([]int, conditions)
		}

		for _, i := range share.meets {
			if int(i) < conditions {
				met[share.subject][i]++
			}
		}
	}

	for i := range conditions {
		for _, counts := range met {
			if counts[i] >= oftenSampled {
				frequent = append(frequent, i)

				break
			}
		}
	}

	return frequent
}

// metBy returns the sampled datasets that meet the most conditions.
func metBy(sample []sampledShare) (list []found) {
	for _, share := range sample {
		if len(share.meets) > 0 {
			list = append(list, found{int64(len(share.meets)), share.at})
		}
	}

	slices.SortStableFunc(list, func(a, b found) int { return cmp.Compare(b.n, a.n) })

	return list[:min(maxCandidates, len(list))]
}
