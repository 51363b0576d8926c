// Package guard decides which network addresses the service may connect to for its users.
//
// The address of a connection is checked, not the name: after the name was resolved and before anything is sent. A name that resolves to another address the
// next time is checked again, because that is another connection.
package guard

import (
	"errors"
	"net"
	"net/netip"
	"slices"
	"syscall"
)

// ErrAddress is the failure of a connection to an address that is not public.
var ErrAddress = errors.New("the address is not public")

// special returns the networks inside the public ranges that are not public, and those of IPv4 that are not. Source: the registries of special addresses of
// IANA.
func special() []netip.Prefix {
	var list []netip.Prefix

	for _, text := range []string{
		"0.0.0.0/8", "10.0.0.0/8", "100.64.0.0/10", "127.0.0.0/8", "169.254.0.0/16", "172.16.0.0/12", "192.0.0.0/24", "192.0.2.0/24", "192.88.99.0/24",
		"192.168.0.0/16", "198.18.0.0/15", "198.51.100.0/24", "203.0.113.0/24", "224.0.0.0/4", "240.0.0.0/4",
		"2001::/23",     // Teredo, ORCHID and others of the IETF
		"2001:db8::/32", // documentation
		"2002::/16",     // 6to4, which contains an IPv4 address
		"3fff::/20",     // documentation
	} {
		list = append(list, netip.MustParsePrefix(text))
	}

	return list
}

// Policy decides which addresses may be connected to.
type Policy struct {
	allowed []netip.Prefix // networks of the operator
	special []netip.Prefix
}

// New returns a policy that permits public addresses and the networks of the operator.
func New(allowed []netip.Prefix) Policy { return Policy{allowed: allowed, special: special()} }

// Permits reports whether a connection may be made.
func (p Policy) Permits(address netip.Addr) bool { return p.ours(address) || p.public(address) }

// ours reports whether the operator allows the address.
func (p Policy) ours(address netip.Addr) bool {
	address = address.Unmap().WithZone("")

	return slices.ContainsFunc(p.allowed, func(network netip.Prefix) bool { return network.Contains(address) })
}

// public reports whether everybody may know the address. Of IPv6 only global unicast is public, which leaves out NAT64, IPv4-compatible, unique local,
// link-local, site-local and multicast addresses.
func (p Policy) public(address netip.Addr) bool {
	if !address.IsValid() || address.Zone() != "" {
		return false
	}

	address = address.Unmap()

	if address.Is6() {
		bytes := address.As16()
		isISATAP := bytes[8]&^0x02 == 0 && bytes[9] == 0 && bytes[10] == 0x5e && bytes[11] == 0xfe // contains an IPv4 address

		if bytes[0]&0xe0 != 0x20 || isISATAP { // 2000::/3
			return false
		}
	}

	return !slices.ContainsFunc(p.special, func(network netip.Prefix) bool { return network.Contains(address) })
}

// Control refuses a connection after the name was resolved and before anything is sent. Only networks of the operator may be reached without TLS.
func (p Policy) Control(plain bool) func(network, address string, c syscall.RawConn) error {
	return func(_, address string, _ syscall.RawConn) error {
		host, _, err := net.SplitHostPort(address)
		if err != nil {
			return ErrAddress
		}

		found, err := netip.ParseAddr(host)
		if err != nil || !p.Permits(found) || plain && !p.ours(found) {
			return ErrAddress
		}

		return nil
	}
}
