// Copyright The belay Authors.
// SPDX-License-Identifier: Apache-2.0

package machine

import (
	"fmt"
	"strconv"
	"strings"
)

// An Amount is a number of machines, or a share of a number of them.
type Amount struct {
	Value   int
	Percent bool
}

// ParseAmount reads "3" or "25%". A number is not negative, a share at most 100%.
func ParseAmount(s string) (Amount, error) {
	digits, percent := strings.CutSuffix(s, "%")
	n, err := strconv.Atoi(digits)
	a := Amount{Value: n, Percent: percent}
	if err != nil || strconv.Itoa(n) != digits || a.check() != nil {
		return Amount{}, fmt.Errorf("machine: amount %.40q: want a number like 3, or a share like 25%% that is at most 100%%", s)
	}
	return a, nil
}

func (a Amount) check() error {
	if a.Value < 0 || a.Percent && a.Value > 100 {
		return fmt.Errorf("amount %s: want a number of at least 0, or a share of 0%% to 100%%", a)
	}
	return nil
}

// String returns what ParseAmount reads.
func (a Amount) String() string {
	if a.Percent {
		return strconv.Itoa(a.Value) + "%"
	}
	return strconv.Itoa(a.Value)
}

// Up returns the number of machines of so many, a share rounded up. Nothing negative comes of it.
func (a Amount) Up(of int) int {
	if a.Percent {
		return max(0, int((int64(a.Value)*int64(of)+99)/100))
	}
	return max(0, a.Value)
}

// Down is Up with a share rounded down.
func (a Amount) Down(of int) int {
	if a.Percent {
		return max(0, int(int64(a.Value)*int64(of)/100))
	}
	return max(0, a.Value)
}
