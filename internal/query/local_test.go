package query

import (
	"strings"
	"testing"

	"github.com/google/uuid"
	"github.com/stretchr/testify/require"

	"quern.dev/quern/internal/catalog"
	"quern.dev/quern/internal/engine"
)

// read returns a dataset that a statement names. Namespaces with the same path have the same id.
func read(path, shown string) resolved {
	parts := strings.Split(path, "/")

	return resolved{
		Dataset: catalog.Dataset{NamespaceID: uuid.NewSHA1(uuid.Nil, []byte(parts[0]+"/"+parts[1])), Namespace: parts[1], Name: parts[2]},
		owner:   parts[0], name: parts[2], shown: shown,
	}
}

func TestLocalize(t *testing.T) {
	t.Parallel()

	known := trees(t, "allowed")

	for _, c := range []struct {
		text  string
		reads []string // datasets, in the order of the names in the statement
		want  string   // the changed text
		home  string
	}{
		{"SELECT * FROM orders", []string{"ada/shop/orders"}, "SELECT * FROM orders", ""},
		{`SELECT * FROM "ann/sales/orders" o`, []string{"ann/sales/orders"}, `SELECT * FROM "ann/sales/orders" o`, ""},
		{"SELECT * FROM shop.orders", []string{"ada/shop/orders"}, "SELECT * FROM shop.orders", ""},
		{"SELECT * FROM bob.sales.leads l", []string{"bob/sales/leads"}, `SELECT * FROM "sales".leads l`, ""},
		{`SELECT * FROM "my.shop"."a-b"`, []string{"ada/my.shop/a-b"}, `SELECT * FROM "my.shop"."a-b"`, ""},
		{
			"SELECT orders.id, shop.orders.id, ada.shop.orders.id FROM shop . orders",
			[]string{"ada/shop/orders"},
			`SELECT orders.id, shop.orders.id, "shop".orders.id FROM shop . orders`, "",
		},
		{"SELECT * FROM main.orders", []string{"ada/main/orders"}, `SELECT * FROM "__n0".orders`, ""},
		{"SELECT * FROM memory.main.orders", []string{"memory/main/orders"}, `SELECT * FROM "__n0".orders`, ""},
		{"WITH orders AS (SELECT 1) SELECT * FROM orders, shop.orders", []string{"ada/shop/orders"}, "WITH orders AS (SELECT 1) SELECT * FROM orders, shop.orders", ""},
		{
			"SELECT * FROM shop.orders JOIN lab.orders ON shop.orders.id = lab.orders.id",
			[]string{"ada/shop/orders", "ada/lab/orders"},
			"SELECT * FROM shop.orders JOIN lab.orders ON shop.orders.id = lab.orders.id", "",
		},
	} {
		s := checked(t, known, c.text)
		require.Len(t, s.tables, len(c.reads), c.text)

		var reads []resolved
		for i, path := range c.reads {
			s.tables[i].read = i
			reads = append(reads, read(path, s.tables[i].String()))
		}

		l, err := localize(s, c.text, reads)
		require.NoError(t, err, c.text)
		require.Equal(t, c.want, l.text)
		require.Equal(t, c.home, l.home)
	}
}

// TestLocalNames checks that two namespaces with one name have two schemas, and that names without a namespace have the
// schema of theirs.
func TestLocalNames(t *testing.T) {
	t.Parallel()

	s := &statement{tables: []table{{name: "orders"}, {owner: "bob", namespace: "shop", name: "orders", read: 1, at: 8}}, tree: object{"statements": []any{object{"node": object{}}}}}
	reads := []resolved{read("ada/shop/orders", "orders"), read("bob/shop/orders", "bob.shop.orders")}

	l, err := localize(s, "orders, bob.shop.orders", reads)
	require.NoError(t, err)
	require.Equal(t, `orders, "__n1".orders`, l.text)
	require.Equal(t, "shop", l.home)
	require.Equal(t, "shop", l.view(reads[0], engine.View{}).Schema)
	require.Equal(t, "__n1", l.view(reads[1], engine.View{}).Schema)

	for changed, original := range map[int]int{-1: -1, 0: 0, 7: 7, 8: 8, 10: 8, 14: 16, 15: 17, 21: 23} {
		require.Equal(t, original, l.original(changed), changed)
	}

	said := &engine.StatementError{Message: `"memory.__n1.orders" or "memory.shop.orders"`, Position: 15}
	require.Error(t, l.spelled(said))
	require.Equal(t, `"bob.shop.orders" or "shop.orders"`, said.Message)
	require.Equal(t, 17, said.Position)

	s.tables[1].at = 3
	_, err = localize(s, "orders, bob.shop.orders", reads)
	require.ErrorContains(t, err, "cannot be read")
}

func TestChain(t *testing.T) {
	t.Parallel()

	for text, parts := range map[string]string{
		`a.b`: "a b", `"a".b`: "a b", `"a.b".c`: "a.b c", `a /* . */ . "b"""`: `a b"`, "a -- x\n.\n b.c": "a b c", `ä.b`: "ä b", `a/* /* */ */.b`: "a b",
	} {
		tokens := chain("x "+text+" y", 2, strings.Fields(parts))
		require.Len(t, tokens, len(strings.Fields(parts)), text)
		require.Equal(t, 2, tokens[0].from)
		require.Equal(t, len(text)+2, tokens[len(tokens)-1].to)
	}

	for _, text := range []string{``, `a`, `a.`, `a.c`, `a b`, `"a.b`, `a./* b`, `a-- .b`, `"A".b`, `.a.b`} {
		require.Nil(t, chain(text, 0, []string{"a", "b"}), text)
	}

	require.Nil(t, chain("a.b", -1, []string{"a"}))
	require.Nil(t, chain("a.b", 9, []string{"a"}))
}

// FuzzChain checks that the parts of a name are found exactly where they are.
func FuzzChain(f *testing.F) {
	f.Add(`SELECT 7 FROM shop."a-b.c"`, 14, "shop", "a-b.c")
	f.Add(`FROM a /* /* */ */ . "b"""`, 5, "a", `b"`)

	f.Fuzz(func(t *testing.T, text string, at int, first, second string) {
		for _, found := range chain(text, at, []string{first, second}) {
			_, name := word(text[:found.to], found.from)
			require.Contains(t, []string{first, second}, name)
		}
	})
}
