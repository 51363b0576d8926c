package main

import (
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestDidYouMean(t *testing.T) {
	t.Parallel()

	root := newProgram().root()
	dataset, _, err := root.Find([]string{"dataset"})
	require.NoError(t, err)

	for word, first := range map[string]string{
		"ls": "`quern dataset list`, ", "rm": "`quern dataset delete`, ", "mv": "`quern dataset rename`, ", "cat": "`quern rows`, `quern export`, ",
		"show": "`quern dataset show`, ", "profile": "`quern dataset profile`?", "uplaod": "`quern upload`?",
	} {
		require.Regexp(t, "^"+regexp.QuoteMeta("Did you mean "+first), didYouMean(root, word), word)
		require.LessOrEqual(t, strings.Count(didYouMean(root, word), "`quern "), suggestions, word)
	}

	require.Empty(t, didYouMean(root, "zz"))
	require.Empty(t, didYouMean(root, "as"), "a short word is similar to any other")
	require.Equal(t, "Did you mean `quern dataset list`?", didYouMean(dataset, "ls"))
	require.Equal(t, "Did you mean `quern dataset history`?", didYouMean(dataset, "histroy"))
}
