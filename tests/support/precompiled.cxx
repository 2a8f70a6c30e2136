// Belongs to the target that makes the precompiled header; another suffix than .cpp keeps the program's header off it.
