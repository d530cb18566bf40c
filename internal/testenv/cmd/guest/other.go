// Copyright The belay Authors.
// SPDX-License-Identifier: Apache-2.0

//go:build !linux

package main

import "fmt"

func main() { fmt.Println("the guest is for Linux") }
