package main

import (
	"errors"
	"iter"
	"testing"

	"github.com/google/uuid"
	"github.com/stretchr/testify/require"
)

func ids(texts ...string) (list []uuid.UUID) {
	for _, text := range texts {
		list = append(list, uuid.MustParse(text))
	}

	return list
}

// paged yields the ids, and then fails if failure is not nil.
func paged(list []uuid.UUID, failure error) iter.Seq2[uuid.UUID, error] {
	return func(yield func(uuid.UUID, error) bool) {
		for _, id := range list {
			if !yield(id, nil) {
				return
			}
		}

		if failure != nil {
			yield(uuid.Nil, failure)
		}
	}
}

func TestFindID(t *testing.T) {
	t.Parallel()

	list := ids("01a1e6e6-57df-7115-bbc5-94fae54f0158", "01a1e6e6-57df-7c51-80b2-e1b4c470899b", "02a1e6e6-563f-7c51-80b2-e1b4c470899b")
	about := func(id uuid.UUID) listed { return listed{id, "made"} }
	broken := errors.New("broken")

	for text, want := range map[string]uuid.UUID{
		"02a1": list[2], "02A1E6": list[2], "01a1e6e6-57df-71": list[0], list[1].String(): list[1],
		"03a1e6e6-563f-7c51-80b2-e1b4c470899b": uuid.MustParse("03a1e6e6-563f-7c51-80b2-e1b4c470899b"), // the service decides about a whole id
	} {
		found, err := findID(text, "look", paged(list, nil), about)
		require.NoError(t, err, text)
		require.Equal(t, want, found, text)
	}

	for text, code := range map[string]int{"": exitNotFound, "02a": exitNotFound, "first": exitNotFound, "%_%_": exitNotFound, "0333": exitNotFound, "01a1e6e6": exitUsage} {
		_, err := findID(text, "look", paged(list, nil), about)

		var refused exitError

		require.ErrorAs(t, err, &refused, text)
		require.Equal(t, code, refused.code, text)

		if code == exitUsage {
			require.Equal(t, `2 ids begin with "01a1e6e6"`, refused.text)
			require.Contains(t, refused.hint, "\n  "+list[0].String()+"  made\n  "+list[1].String()+"  made")
		}
	}

	// A list that is incomplete does not prove that an id is the only one.
	_, err := findID("02a1", "look", paged(list, broken), about)
	require.ErrorIs(t, err, broken)
}

func TestShortened(t *testing.T) {
	t.Parallel()

	list := ids("01a1e6e6-57df-7115-bbc5-94fae54f0158", "01a1e6e6-57e0-7c51-80b2-e1b4c470899b", "01a1e6e6-57e0-7c51-80b2-e1b4c470899c")

	require.Equal(t, [][]any{{"01a1e6e6-57df", 1}, {"01a1e6e6-57e0", 2}}, shortened([][]any{{list[0], 1}, {list[1], 2}}))
	require.Equal(t, [][]any{{list[1], 1}, {list[2], 2}}, shortened([][]any{{list[1], 1}, {list[2], 2}}), "they would be the same")
	require.Equal(t, [][]any{{"orders", list[0]}}, shortened([][]any{{"orders", list[0]}}))
}
