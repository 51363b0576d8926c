package ingest

import (
	"testing"

	"github.com/stretchr/testify/require"
)

// TestAlike checks which names of columns suggest that two datasets can be joined.
func TestAlike(t *testing.T) {
	t.Parallel()

	for _, c := range []struct {
		dataset, column, otherDataset, other string
		want                                 bool
	}{
		{"orders", "customer_id", "customers", "CustomerID", true},
		{"orders", "customer_id", "customers", "id", true},
		{"categories", "id", "products", "categoryId", true},
		{"orders", "box", "boxes", "code", true},
		{"orders", "address", "Address", "code", true},
		{"orders", "Größe", "sizes", "größe", true},
		{"members", "home_shop", "shops", "shop_id", true},
		{"branches", "br_cd", "rentals", "out_br", true},
		{"sales", "sku", "products", "sku", true},
		{"damages", "rent_no", "rentals", "rent_no", true},
		{"orders", "no", "customers", "no", false},
		{"orders", "shop_size", "shops", "shop_id", false},
		{"orders", "id", "customers", "id", false},
		{"orders", "customer_id", "products", "id", false},
		{"orders", "amount", "customers", "name", false},
	} {
		require.Equal(t, c.want, alike(c.dataset, c.column, c.otherDataset, c.other), "%+v", c)
	}
}
