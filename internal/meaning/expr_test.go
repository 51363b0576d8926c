package meaning_test

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"quern.dev/quern/internal/meaning"
)

func TestParse(t *testing.T) {
	t.Parallel()

	for text, want := range map[string]string{
		`quantity*price`:                `quantity * price`,
		` a + b * c `:                   `a + b * c`,
		`(a + b) * c`:                   `(a + b) * c`,
		`a - (b - c)`:                   `a - (b - c)`,
		`a - b - c`:                     `a - b - c`,
		`a / (b * c)`:                   `a / (b * c)`,
		`((a))`:                         `a`,
		`-a * -(b + 1)`:                 `-a * -(b + 1)`,
		`--a`:                           `--a`,
		`1.5 * .5 + 2.`:                 `1.5 * .5 + 2.`,
		`quantity * products . price`:   `quantity * products.price`,
		`"unit price" * "odd ""name"""`: `"unit price" * "odd ""name"""`,
		`"shop/products"."list price"`:  `"shop/products"."list price"`,
		`"plain"`:                       `plain`,
		`größe * 2`:                     `größe * 2`,
		`"2024" + "a.b"`:                `"2024" + "a.b"`,
		strings.Repeat("a+", 400) + "a": strings.Repeat("a + ", 400) + "a",
		strings.Repeat("(", 40) + `a` + strings.Repeat(")", 40): `a`,
	} {
		parsed, err := meaning.Parse(text)
		require.NoError(t, err, text)
		require.Equal(t, want, parsed.String(), text)
	}
}

func TestParseTree(t *testing.T) {
	t.Parallel()

	parsed, err := meaning.Parse(`quantity * (1 - products.discount)`)
	require.NoError(t, err)
	require.Equal(t, meaning.Expr{Op: meaning.Times, Args: []meaning.Expr{
		{Op: meaning.ColumnOp, Column: meaning.Ref{Column: "quantity"}},
		{Op: meaning.Minus, Args: []meaning.Expr{
			{Op: meaning.NumberOp, Number: "1"},
			{Op: meaning.ColumnOp, Column: meaning.Ref{Dataset: "products", Column: "discount"}},
		}},
	}}, parsed)
	require.Equal(t, []meaning.Ref{{Column: "quantity"}, {Dataset: "products", Column: "discount"}}, parsed.Refs())

	renamed, ok := parsed.Replace(func(r meaning.Ref) (meaning.Ref, bool) {
		if r.Dataset != "" {
			r.Dataset = "our goods"
		}

		return r, true
	})
	require.True(t, ok)
	require.Equal(t, `quantity * (1 - "our goods".discount)`, renamed.String())
	require.Equal(t, `quantity * (1 - products.discount)`, parsed.String(), "the original stays")

	_, ok = parsed.Replace(func(r meaning.Ref) (meaning.Ref, bool) { return r, r.Dataset == "" })
	require.False(t, ok)
}

func TestParseRefuses(t *testing.T) {
	t.Parallel()

	for text, want := range map[string]string{
		``:                "the expression ends where a column, a number or a parenthesis is expected, at character 1",
		`a +`:             "the expression ends where a column, a number or a parenthesis is expected, at character 4",
		`a b`:             "'b' stands where an operator is expected, at character 3",
		`(a + b`:          "the expression ends where an operator or a closing parenthesis is expected, at character 7",
		`a)`:              "')' stands where an operator is expected, at character 2",
		`sum(a)`:          "'(' stands where an operator is expected, at character 4",
		`a % b`:           "'%' stands where an operator is expected, at character 3",
		`a; DROP TABLE b`: "';' stands where an operator is expected, at character 2",
		`a -- b'`:         `'\'' stands where an operator is expected, at character 7`,
		`1.2.3`:           "a number has digits and at most one point; a name that begins with a digit stands in double quotes, at character 1",
		`.`:               "a number has digits and at most one point; a name that begins with a digit stands in double quotes, at character 1",
		`2 * 3x`:          "a number has digits and at most one point; a name that begins with a digit stands in double quotes, at character 5",
		`"a`:              "the closing quote is missing, at character 1",
		`"`:               "the closing quote is missing, at character 1",
		`"a""`:            "the closing quote is missing, at character 1",
		`""`:              "the name in quotes is empty, at character 1",
		`a.b.c`:           "'.' stands where an operator is expected, at character 4",
		`a.`:              "the expression ends where a column, a number or a parenthesis is expected, at character 3",
		`a.1`:             "'1' stands where a column, a number or a parenthesis is expected, at character 3",
		strings.Repeat("(", 51) + "a" + strings.Repeat(")", 51): "the expression is nested deeper than 50 levels, at character 51",
		strings.Repeat("-", 51) + "a":                           "the expression is nested deeper than 50 levels, at character 51",
	} {
		_, err := meaning.Parse(text)
		require.EqualError(t, err, want, text)
	}
}

// FuzzParse checks that every expression that is accepted means the same after it was written out.
func FuzzParse(f *testing.F) {
	for _, seed := range []string{`quantity * products.price`, `-(a - "b c") / 1.5`, `"a""b".c`, `((`, `"`, `1.`, "a\x00"} {
		f.Add(seed)
	}

	f.Fuzz(func(t *testing.T, text string) {
		parsed, err := meaning.Parse(text)
		if err != nil {
			require.NotEmpty(t, err.Error())

			return
		}

		written := parsed.String()
		again, err := meaning.Parse(written)
		require.NoError(t, err, written)
		require.Equal(t, parsed, again)
	})
}
