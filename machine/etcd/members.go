// Copyright The belay Authors.
// SPDX-License-Identifier: Apache-2.0

package etcd

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"sync"

	"github.com/belayproject/belay/internal/option"
	"github.com/belayproject/belay/machine"
)

// A Member is one of the cluster, as it says itself.
type Member struct {
	// ID is a number that does not fit into a float, and so is text.
	ID string `json:"ID"`
	// Name is empty before the member has started for the first time.
	Name       string   `json:"name"`
	PeerURLs   []string `json:"peerURLs"`
	ClientURLs []string `json:"clientURLs"`
	// Learner has no vote.
	Learner bool `json:"isLearner"`
}

// runsEtcd reports whether a member runs on a machine: it has the name of the machine or of its Node, or listens to its peers at one of these or at an
// address of the instance.
func runsEtcd(m machine.Machine, member Member) bool {
	at := []string{m.Name}
	if m.Node != nil {
		at = append(at, m.Node.Name)
	}
	if slices.Contains(at, member.Name) {
		return true
	}
	if m.Instance != nil {
		for _, a := range m.Instance.Addresses {
			at = append(at, a.Address)
		}
	}
	return slices.ContainsFunc(member.PeerURLs, func(peer string) bool {
		u, err := url.Parse(peer)
		return err == nil && slices.Contains(at, u.Hostname())
	})
}

// List returns the members, each with its health and with the machine on which it runs. One that several machines may run is of none.
func (c *Client) List(ctx context.Context, machines []machine.Machine) ([]machine.Member, error) {
	members, err := c.members(ctx)
	if err != nil {
		return nil, err
	}
	healthy := c.healthy(ctx, members)
	all := make([]machine.Member, len(members))
	for i, member := range members {
		all[i] = machine.Member{Name: member.words(), Healthy: healthy[i], Learner: member.Learner}
		n := 0
		for _, m := range machines {
			if c.hosts(m, member) {
				all[i].Machine = m.Key
				n++
			}
		}
		if n > 1 {
			all[i].Machine = machine.Key{}
		}
	}
	return all, nil
}

// hosts reports whether a member runs on a machine, which may have one by its roles.
func (c *Client) hosts(m machine.Machine, member Member) bool {
	return machine.Protected(m.Spec.Roles) && c.o.Runs(m, member)
}

// words name a member, also one that has not started.
func (m Member) words() string {
	if m.Name != "" {
		return m.Name
	}
	return strings.Join(m.PeerURLs, ",")
}

// healthy asks all members at once whether they are. One that takes part in decisions is; one that does not answer is not.
func (c *Client) healthy(ctx context.Context, members []Member) []bool {
	all := make([]bool, len(members))
	var wg sync.WaitGroup
	for i, m := range members {
		wg.Go(func() {
			all[i] = slices.ContainsFunc(m.ClientURLs, func(at string) bool {
				var answer struct {
					Health string `json:"health"`
				}
				err := c.one(ctx, http.MethodGet, strings.TrimSuffix(at, "/")+"/health", nil, &answer)
				return err == nil && answer.Health == "true"
			})
		})
	}
	wg.Wait()
	return all
}

// Leave removes the member that runs on a machine, if those that would remain have a quorum that is healthy. It is done for a machine without one.
func (c *Client) Leave(ctx context.Context, m machine.Machine) (done bool, blocked string, err error) {
	if c.http == nil {
		return false, "", option.NotMade("machine/etcd.Client.Leave", "machine/etcd.New")
	}
	if !machine.Protected(m.Spec.Roles) {
		return true, "", nil
	}
	members, err := c.members(ctx)
	if err != nil {
		return false, "", err
	}
	i := slices.IndexFunc(members, func(is Member) bool { return c.hosts(m, is) })
	if i < 0 {
		return true, "", nil
	}
	going := members[i]
	if slices.ContainsFunc(members[i+1:], func(is Member) bool { return c.hosts(m, is) }) {
		return false, fmt.Sprintf("more than one member may run on machine %q: remove the right one by hand", m.Key), nil
	}
	if why := c.holds(ctx, members, i); why != "" {
		return false, why, nil
	}
	var answer struct{}
	err = c.call(ctx, c.elsewhere(members, going.ID), "/v3/cluster/member/remove", map[string]string{"ID": going.ID}, &answer)
	if refusal := (*answerError)(nil); errors.As(err, &refusal) && refusal.Code == notFound {
		err = nil // somebody was faster
	}
	if err != nil {
		return false, "", fmt.Errorf("etcd: remove member %q: %w", going.words(), err)
	}
	return true, "", nil
}

// holds says why a member must not go; empty if it may.
func (c *Client) holds(ctx context.Context, members []Member, going int) string {
	if members[going].Learner {
		return ""
	}
	healthy := c.healthy(ctx, members)
	voters, well := 0, 0
	for i, m := range members {
		if i == going || m.Learner {
			continue
		}
		voters++
		if healthy[i] {
			well++
		}
	}
	switch quorum := voters/2 + 1; {
	case voters == 0:
		return fmt.Sprintf("member %q is the last one", members[going].words())
	case well < quorum:
		return fmt.Sprintf("without member %q, %d of %d members would be healthy, %d have to be", members[going].words(), well, voters, quorum)
	}
	return ""
}
