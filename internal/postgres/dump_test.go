package postgres

import (
	"testing"

	"github.com/stretchr/testify/require"
)

// TestWithoutPassword checks that no password is among the arguments of another program.
func TestWithoutPassword(t *testing.T) {
	t.Parallel()

	for address, want := range map[string][2]string{
		"postgres://ada:p%40ss@host:5432/quern?sslmode=require":                 {"postgres://ada@host:5432/quern?sslmode=require", "p@ss"},
		"postgresql://host/quern?user=ada&password=secret&pool_max_conns=3":     {"postgresql://host/quern?user=ada", "secret"},
		"postgres:///quern?host=/run/postgresql&sslrootcert=/etc/ssl/a%20b.pem": {"postgres:///quern?host=%2Frun%2Fpostgresql&sslrootcert=%2Fetc%2Fssl%2Fa%20b.pem", ""},
	} {
		rest, password, err := withoutPassword(address)
		require.NoError(t, err)
		require.Equal(t, want, [2]string{rest, password})
	}

	for _, address := range []string{"host=a password=secret", "postgres://host/quern?sslpassword=secret"} {
		_, _, err := withoutPassword(address)
		require.Error(t, err)
		require.NotContains(t, err.Error(), "secret")
	}
}
