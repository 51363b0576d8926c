package connection

import (
	"net/url"
	"testing"

	"github.com/google/uuid"
	"github.com/stretchr/testify/require"
)

func TestSeal(t *testing.T) {
	t.Parallel()

	account, id := uuid.New(), uuid.New()
	old := Keys{Current: "old"}
	sealed, err := old.seal(account, id, []byte("secret"))
	require.NoError(t, err)

	opened, err := old.open(sealed, account, id)
	require.NoError(t, err)
	require.Equal(t, "secret", string(opened))

	// Neither another connection nor another account opens it, nor another key.
	_, err = old.open(sealed, account, uuid.New())
	require.Error(t, err)
	_, err = old.open(sealed, uuid.New(), id)
	require.Error(t, err)
	_, err = Keys{Current: "new"}.open(sealed, account, id)
	require.ErrorIs(t, err, errKey)

	changed, err := Keys{Current: "new", Other: "old"}.rewrap(sealed, account, id)
	require.NoError(t, err)
	require.Equal(t, sealed.text, changed.text)

	opened, err = Keys{Current: "new"}.open(changed, account, id)
	require.NoError(t, err)
	require.Equal(t, "secret", string(opened))

	_, err = old.open(changed, account, id)
	require.ErrorIs(t, err, errKey)

	for i := range changed.wrapped {
		broken := changed
		broken.wrapped = append([]byte(nil), changed.wrapped...)
		broken.wrapped[i] ^= 1
		_, err = Keys{Current: "new"}.open(broken, account, id)
		require.Error(t, err)
	}
}

func TestHosts(t *testing.T) {
	t.Parallel()

	list := hosts{"s3.example.com", "minio.example.com:9000", "*.store.example.com", "[::1]:7070"}

	for text, allowed := range map[string]bool{
		"https://s3.example.com": true, "https://S3.EXAMPLE.COM.": true, "https://s3.example.com:443": true, "https://s3.example.com:8443": false, "http://s3.example.com:443": false,
		"https://minio.example.com:9000": true, "http://minio.example.com:9000": true, "https://minio.example.com": false, "https://a.store.example.com": true,
		"https://a.b.store.example.com": true, "https://store.example.com": false, "https://evilstore.example.com": false, "https://.store.example.com": false,
		"https://s3.example.com.evil.com": false, "https://[::1]:7070": true, "https://[::1]": false,
	} {
		address, err := url.Parse(text)
		require.NoError(t, err)
		require.Equal(t, allowed, list.allow(address), text)
	}
}
