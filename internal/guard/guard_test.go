package guard

import (
	"net/netip"
	"testing"

	"github.com/stretchr/testify/require"
)

// inner returns addresses that must not be reached, as they can stand in a URL.
func inner() []string {
	return []string{
		"127.0.0.1", "127.1.2.3", "0.0.0.0", "0.1.2.3", "10.0.0.1", "10.255.255.255", "172.16.0.1", "172.31.255.254", "192.168.0.1", "192.168.255.255",
		"169.254.169.254", "169.254.170.2", "100.64.0.1", "100.100.100.200", "100.127.255.255", "192.0.0.1", "192.0.0.192", "192.0.2.1", "192.88.99.1", "198.18.0.1", "198.19.255.255",
		"198.51.100.7", "203.0.113.9", "224.0.0.1", "239.255.255.250", "240.0.0.1", "255.255.255.255",
		"::", "::1", "::ffff:127.0.0.1", "::ffff:169.254.169.254", "::ffff:10.0.0.1", "::127.0.0.1", "::ffff:0:127.0.0.1",
		"64:ff9b::7f00:1", "64:ff9b::a9fe:a9fe", "64:ff9b:1::1", "100::1", "fc00::1", "fd00:ec2::254", "fe80::1", "fec0::1", "ff02::1",
		"2001::1", "2001:0:7f00:1::", "2001:20::1", "2001:db8::1", "2002:7f00:1::", "2002:a9fe:a9fe::1", "3fff::1", "5f00::1", "2a00:1450:4001::5efe:127.0.0.1", "2a00:1450:4001::200:5efe:10.0.0.1",
		"fe80::1%lo", "2a00:1450::1%lo",
	}
}

func TestInnerAddresses(t *testing.T) {
	t.Parallel()

	p := New(nil)

	for _, text := range inner() {
		require.False(t, p.Permits(netip.MustParseAddr(text)), text)
	}

	for _, text := range []string{"1.1.1.1", "8.8.8.8", "93.184.216.34", "172.32.0.1", "100.128.0.1", "192.0.1.1", "2606:4700:4700::1111", "2a00:1450:4001:830::200e", "::ffff:8.8.8.8"} {
		require.True(t, p.Permits(netip.MustParseAddr(text)), text)
	}

	allowing := New([]netip.Prefix{netip.MustParsePrefix("10.0.0.0/8"), netip.MustParsePrefix("fd00::/8")})
	for text, permitted := range map[string]bool{"10.1.2.3": true, "::ffff:10.1.2.3": true, "fd00::1": true, "192.168.0.1": false, "127.0.0.1": false, "fc00::1": false} {
		require.Equal(t, permitted, allowing.Permits(netip.MustParseAddr(text)), text)
	}

	// Without TLS only networks of the operator are reached, also if the address is public.
	require.ErrorIs(t, allowing.Control(true)("tcp", "8.8.8.8:80", nil), ErrAddress)
	require.NoError(t, allowing.Control(true)("tcp", "10.1.2.3:80", nil))
	require.NoError(t, allowing.Control(false)("tcp", "8.8.8.8:443", nil))
}

// FuzzAddress checks that whatever is permitted is an address of IPv4 or of 2000::/3.
func FuzzAddress(f *testing.F) {
	for _, text := range inner() {
		f.Add(text)
	}

	p := New(nil)

	f.Fuzz(func(t *testing.T, text string) {
		address, err := netip.ParseAddr(text)
		if err != nil || !p.Permits(address) {
			return
		}

		if address.IsPrivate() || address.IsLoopback() || address.IsLinkLocalUnicast() || address.IsMulticast() || address.IsUnspecified() || address.Zone() != "" {
			t.Errorf("%s is permitted", text)
		}
	})
}
