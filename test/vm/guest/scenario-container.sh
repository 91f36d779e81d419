# The life of the package on one host, in a container: all of scenario-vm.sh but for the kernel, and what would take an emulated machine
# too long. A function a boot.

boot_1() {
  step 'a bare host is made ready' prepare
  step 'apt installs the package, and enables what does nothing yet' install
  step 'the control plane serves as its unit, as a user of its own' serve_control_plane
  step 'a join brings up an interface, and enables the daemon' join_here
  step 'the daemon is ready in its sandbox' see_sandbox
  step 'the daemon applies in its sandbox that a second host joins, and they ping each other' join_far
  step 'the daemon applies a change of the network in its sandbox' change_network
  step 'names of peers and of a domain behind a route resolve, by the daemon in its sandbox' resolve_names
  step 'a host in a network namespace leaves the resolver of this one alone' see_no_names_far
  step 'without systemd-resolved a domain is refused, and resolv.conf stays as it is' resolve_nothing
  step 'the daemon mends drift in its sandbox' mend_drift
  step 'the daemon writes metrics where node_exporter of Debian reads them' write_metrics
  step 'the doctor finds nothing wrong' consult_doctor
  step 'the control plane is stopped for good' stop_control_plane
  restart
}

boot_2() {
  step 'after a restart peers ping each other without the control plane' ping_after_restart
  step 'after a restart names resolve without the control plane' see_names
  step 'a service that waits for cpn-online.target has the address and the names' see_bound_service
  step 'nothing failed at the restart' see_no_failure
  step 'the control plane comes back' start_control_plane
  cut_during 'the power goes when a join has its keys' join_second see_second_keys
}

boot_3() {
  step 'after a power cut the first network is up' ping_after_restart
  step 'the same key finishes a join that had its keys' finish_second
  step 'the second network is left' leave_second
  cut_during 'the power goes when the control plane has enrolled a join' join_third see_third_enrolled
}

boot_4() {
  step 'the same key finishes a join that was enrolled' finish_third
  step 'the last leave disables the daemon' leave_all
  step 'the dnsmasq of NetworkManager becomes the resolver' start_manager
  step 'a host with NetworkManager joins, and names of peers and of a domain behind a route resolve' join_with_manager
  step 'names resolve after a restart of NetworkManager' restart_manager
  step 'a leave removes the file of NetworkManager' leave_with_manager
  step 'systemd-resolved is the resolver again' stop_manager
  step 'a first boot is given its configuration' configure_first_boot
  cut_during 'the power goes when a first boot has made its interface' start_first_boot see_first_interface
}

boot_5() {
  step 'the first boot finishes by itself' finish_first_boot
  step 'an upgrade keeps the tunnel, and no packet is lost' upgrade
  step 'a removal leaves the tunnel up' remove
  step 'a purge leaves the host as it was' purge
}
