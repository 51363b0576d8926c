package query //nolint:testpackage // tests what has no exported form

import (
	"testing"

	"github.com/google/uuid"
	"github.com/stretchr/testify/require"

	"quern.dev/quern/internal/catalog"
	"quern.dev/quern/internal/fault"
	"quern.dev/quern/internal/meaning"
)

// datasetOf returns a dataset with columns of numbers.
func datasetOf(account, namespace uuid.UUID, owner, space, name string, columns ...string) catalog.Item {
	item := catalog.Item{Owner: owner, Dataset: catalog.Dataset{Account: account, ID: uuid.New(), NamespaceID: namespace, Namespace: space, Name: name}}
	for _, column := range columns {
		item.Columns = append(item.Columns, catalog.Column{Name: column, Type: "bigint"})
	}

	return item
}

// TestSemanticsNames checks that what is stored names no dataset by its name, and that it is shown with the names that are
// needed to tell datasets apart.
func TestSemanticsNames(t *testing.T) {
	t.Parallel()

	ada, bob, shop, store, lent := uuid.New(), uuid.New(), uuid.New(), uuid.New(), uuid.New()
	orders := datasetOf(ada, shop, "ada", "shop", "orders", "product", "other", "lent", "n")
	here := datasetOf(ada, shop, "ada", "shop", "products", "id", "price")
	there := datasetOf(ada, store, "ada", "store", "Products", "id", "price")
	theirs := datasetOf(bob, lent, "bob", "lent", "rates", "id", "rate")

	join := func(column, to string) Entry[meaning.Join] {
		return Entry[meaning.Join]{Value: meaning.Join{Columns: []string{column}, To: to, Keys: []string{"id"}}}
	}
	measure := func(name, expression string) Entry[meaning.Measure] {
		return Entry[meaning.Measure]{Value: meaning.Measure{Name: name, Function: "sum", Expression: expression}}
	}

	c := checking{meant: meant{item: orders}, want: Semantics{
		Joins:    []Entry[meaning.Join]{join("product", "products"), join("other", "store/products"), join("lent", "bob/lent/rates")},
		Measures: []Entry[meaning.Measure]{measure("a", "n * products.price"), measure("b", `n * "store/products".price - rates.rate`)},
	}, targets: map[string]catalog.Item{"products": here, "store/products": there, "bob/lent/rates": theirs}}

	saved, err := c.check()
	require.NoError(t, err)

	for _, m := range saved.Measures {
		require.NotContains(t, m.Expression, "roducts")
	}

	shown := func(targets ...catalog.Item) meaning.Saved {
		m := meant{item: orders, saved: catalog.Semantics{Saved: saved}, targets: map[string]catalog.Item{}}
		for _, target := range targets {
			m.targets[catalog.TargetKey(target.Dataset)] = target
		}

		return m.named()
	}

	all := shown(here, there, theirs)
	require.Equal(t, []string{"products", "store/Products", "bob/lent/rates"}, []string{all.Joins[0].To, all.Joins[1].To, all.Joins[2].To})
	require.Equal(t, "n * products.price", all.Measures[0].Expression)
	require.Equal(t, `n * "store/Products".price - rates.rate`, all.Measures[1].Expression)

	some := shown(there, theirs)
	require.Len(t, some.Joins, 2)
	require.Len(t, some.Measures, 1, "a measure needs its join")
	require.Equal(t, "n * Products.price - rates.rate", some.Measures[0].Expression)

	there.Columns = there.Columns[1:]
	require.Len(t, shown(here, there, theirs).Joins, 2, "the key is gone")
}

// TestSemanticsAmbiguous checks that a measure does not choose between two joins.
func TestSemanticsAmbiguous(t *testing.T) {
	t.Parallel()

	account, shop := uuid.New(), uuid.New()
	orders := datasetOf(account, shop, "ada", "shop", "orders", "from", "to")
	places := datasetOf(account, shop, "ada", "shop", "places", "id", "distance")

	c := checking{meant: meant{item: orders}, want: Semantics{
		Joins: []Entry[meaning.Join]{
			{Value: meaning.Join{Columns: []string{"from"}, To: "places", Keys: []string{"id"}}},
			{Value: meaning.Join{Columns: []string{"to"}, To: "places", Keys: []string{"id"}}},
		},
		Measures: []Entry[meaning.Measure]{{Value: meaning.Measure{Name: "a", Function: "sum", Expression: "places.distance"}}},
	}, targets: map[string]catalog.Item{"places": places}}

	_, err := c.check()
	require.Equal(t, []fault.Sub{{Code: "measures.0.expression", Message: "places is joined more than once, so it is not clear which join is meant"}}, fault.From(err).Subs)
}

func TestWithUnseen(t *testing.T) {
	t.Parallel()

	key := func(n byte) string { return catalog.TargetKey(catalog.Dataset{ID: uuid.UUID{n}}) }
	join := func(column string, n byte) meaning.Join {
		return meaning.Join{Columns: []string{column}, To: key(n), Keys: []string{"id"}}
	}

	current := meaning.Saved{Meaning: meaning.Meaning{
		Joins: []meaning.Join{join("a", 1), join("b", 2)},
		Measures: []meaning.Measure{
			{Name: "seen", Function: "sum", Expression: `n * "` + key(1) + `".x`},
			{Name: "unseen", Function: "sum", Expression: `n * "` + key(2) + `".x`},
			{Name: "taken", Function: "sum", Expression: `"` + key(2) + `".x`},
			{Name: "own", Function: "sum", Expression: "n"},
		},
	}, RejectedJoins: []meaning.Join{join("c", 1), join("d", 3)}}
	said := meaning.Saved{Meaning: meaning.Meaning{Measures: []meaning.Measure{{Name: "Taken", Function: "count"}}}}

	kept := withUnseen(said, current, map[string]catalog.Item{key(1): {}})
	require.Equal(t, []meaning.Join{join("b", 2)}, kept.Joins)
	require.Equal(t, []meaning.Join{join("d", 3)}, kept.RejectedJoins)
	require.Equal(t, []meaning.Measure{{Name: "Taken", Function: "count"}, current.Measures[1]}, kept.Measures)
}

// TestEffective checks that a draft comes from the profile as far as the columns are still the same, and that what people
// said is laid over it.
func TestEffective(t *testing.T) {
	t.Parallel()

	account, shop := uuid.New(), uuid.New()
	orders := datasetOf(account, shop, "ada", "shop", "orders", "product", "region", "n", "added")
	products := datasetOf(account, shop, "ada", "shop", "products", "id")
	regions := datasetOf(account, shop, "ada", "shop", "regions", "region")

	s := said{
		saved: map[uuid.UUID]catalog.Semantics{orders.ID: {Revision: 1, Saved: meaning.Saved{Meaning: meaning.Meaning{
			Row: "sale", Columns: map[string]meaning.Column{"N": {Role: meaning.Count}, "gone": {Role: meaning.Amount}},
		}}}},
		unique: map[uuid.UUID][]string{products.ID: {"id"}},
	}
	profile := &Profile{
		Rows: 4, Columns: []ColumnProfile{{Name: "product", Type: "bigint", Distinct: 2}, {Name: "n", Type: "varchar", Distinct: 3}},
		Joins: []Join{{Column: "product", With: products, To: "id", Share: 1}, {Column: "region", With: regions, To: "region", Share: 1}, {Column: "gone", With: products, To: "id", Share: 1}},
	}

	found := s.of(orders, catalog.Definition{}, profile).effective()
	require.Equal(t, "sale", found.Row)
	require.Len(t, found.Columns, 4)
	require.Equal(t, meaning.Column{Role: meaning.Count, Confirmed: true}, found.Columns["n"])
	require.False(t, found.Columns["added"].Confirmed)
	require.NotContains(t, found.Columns, "gone")
	require.Equal(t, []meaning.Join{{Columns: []string{"product"}, To: "products", Keys: []string{"id"}}}, found.Joins, "only a unique key")

	require.Len(t, s.of(orders, catalog.Definition{}, nil).effective().Columns, 4, "without a profile there are names and types")
}
