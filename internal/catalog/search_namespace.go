package catalog

import (
	"context"
	"encoding/hex"
	"slices"
	"unicode/utf8"

	"github.com/google/uuid"

	"quern.dev/quern/internal/auth"
	"quern.dev/quern/internal/lexicon"
	"quern.dev/quern/internal/postgres"
)

// Documents contain the ids of namespaces, not their names, so that renaming a namespace does not change the documents
// of all its datasets. A search for a word therefore looks up the namespaces with this name that the caller may see.

// maxNamed is the largest number of namespaces that a word of a search stands for.
const maxNamed = 32

// withNamespaces adds, for each word, the namespaces that have it in their name. A search within a namespace needs none.
func (c Catalog) withNamespaces(ctx context.Context, q postgres.Querier, who auth.Principal, w wanted, in Path) (wanted, error) {
	if in != (Path{}) || len(w.words) == 0 {
		return w, nil
	}

	var listed []entry

	if isRestricted(who) {
		var err error
		if listed, err = c.sharedEntries(q, who)(ctx, entry{}, maxShares); err != nil {
			return w, err
		}
	}

	found, err := selectNamed(ctx, q, who, namedWords(w.words), listed)
	if err != nil {
		return w, err
	}

	lexemes := make([][]string, len(w.words))
	for _, f := range found {
		lexemes[f.word] = append(lexemes[f.word], lexeme(signNamespace, f.namespace))
	}

	for i, list := range lexemes {
		if len(list) > 0 {
			w.places[inNamespace][i] = anyOf(list)
			w.any[i] = anyOf(append(list, w.any[i]))
		}
	}

	return w, nil
}

// namedWord is a word of a search, numbered by its place in the list of words.
type namedWord struct {
	word     int
	form     string
	isPrefix bool // whether the word may be the beginning of a name
}

func namedWords(words []string) (list []namedWord) {
	for i, word := range words {
		for _, form := range lexicon.Forms(word) {
			list = append(list, namedWord{i, form, form == word && utf8.RuneCountInString(word) >= shortest})
		}
	}

	return list
}

// namedNamespace is a namespace that a word stands for.
type namedNamespace struct {
	word      int
	namespace uuid.UUID
}

// namespaceLexemes returns conditions that select the namespaces, each for as many namespaces as one index lookup
// takes.
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

// entriesScope returns the scope of listed namespaces and datasets.
func entriesScope(entries []entry) scope {
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
		conditions: namespaceLexemes(namespaces),
		singles: func(ctx context.Context, q postgres.Querier, w wanted) (map[entry]int, error) {
			found, err := findAmong(ctx, q, w.conditions(), datasets)

			return w.weigh(found), err
		},
	}
}
