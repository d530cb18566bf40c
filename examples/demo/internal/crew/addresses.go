// Copyright The belay Authors.
// SPDX-License-Identifier: Apache-2.0

package crew

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"net"
	"strconv"
)

// Where ports are looked for: below those that Linux gives to clients.
const (
	portMin   = 20000
	portCount = 10000
	portTries = 100
)

// Addresses returns n loopback addresses and a port that is free on all of them: nodes that share one config share its
// ports, and differ in their address. Another process may still take the port before it is used.
func Addresses(ctx context.Context, n int) (addresses []string, port int, err error) {
	for range portTries {
		net := rand.IntN(64)
		addresses = addresses[:0]
		for i := range n {
			addresses = append(addresses, fmt.Sprintf("127.%d.%d.%d", 128+net, i/250, 1+i%250))
		}
		port = portMin + rand.IntN(portCount)
		if err = free(ctx, addresses, port); err == nil {
			return addresses, port, nil
		}
	}
	return nil, 0, fmt.Errorf("looking for a port that is free on %d loopback addresses, %d tries: %w", n, portTries, err)
}

// An Occupied is a port that no other process can have, until its Close.
type Occupied struct {
	Port      int
	listeners []net.Listener
}

// OccupyPort takes a port other than that of healthz on all addresses, and on 127.0.0.1, where a real kubelet has
// its API. It answers nothing there.
func OccupyPort(ctx context.Context, addresses []string, healthzPort int) (*Occupied, error) {
	addresses = append([]string{"127.0.0.1"}, addresses...)
	var err error
	for range portTries {
		o := &Occupied{Port: portMin + rand.IntN(portCount)}
		if o.Port == healthzPort {
			continue
		}
		for _, a := range addresses {
			var l net.Listener
			l, err = new(net.ListenConfig).Listen(ctx, "tcp", net.JoinHostPort(a, strconv.Itoa(o.Port)))
			if err != nil {
				break
			}
			o.listeners = append(o.listeners, l)
		}
		if err == nil {
			return o, nil
		}
		err = errors.Join(err, o.Close())
	}
	return nil, fmt.Errorf("taking a port on %d loopback addresses, %d tries: %w", len(addresses), portTries, err)
}

// Close frees the port.
func (o *Occupied) Close() error {
	var errs []error
	for _, l := range o.listeners {
		errs = append(errs, l.Close())
	}
	return errors.Join(errs...)
}

// free returns nil if nobody listens on the port of any of the addresses.
func free(ctx context.Context, addresses []string, port int) error {
	for _, a := range addresses {
		l, err := new(net.ListenConfig).Listen(ctx, "tcp", net.JoinHostPort(a, strconv.Itoa(port)))
		if err != nil {
			return err
		}
		if err := l.Close(); err != nil {
			return errors.Join(err)
		}
	}
	return nil
}
